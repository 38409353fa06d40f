import { expect, test } from 'vitest';
import { DEFAULT_PERMISSIONS } from '../../../activities/gate/permissions.ts';
import { hookShape, permissionsShape, resolvePermissions } from '../../../worker/config/guards.ts';

test('an agent that says nothing of permissions runs its tools unasked; one that does names a mode', () => {
  expect(resolvePermissions(undefined).mode).toBe('bypass');
  expect(permissionsShape.safeParse({ rules: [] }).success).toBe(false);
  expect(resolvePermissions({ mode: 'auto', onExpiry: 'block' })).toEqual({
    ...DEFAULT_PERMISSIONS,
    mode: 'auto',
    onExpiry: 'block',
  });
});

const run = (): null => null;

test.each([
  [{ event: 'PreToolUse', tool: 'shell', run }, true],
  [{ event: 'Stop', run: { command: './told.sh', args: ['x'], timeLimitMs: 1_000 } }, true],
  [{ event: 'Stopped', run }, false],
  // It would never be called.
  [{ event: 'Stop', tool: 'shell', run }, false],
  [{ event: 'Stop', run: 'told.sh' }, false],
  [{ event: 'Stop', run: { command: '' } }, false],
  [{ event: 'StopGate', run: { command: 'x', timeLimitMs: 600_000 } }, true],
  [{ event: 'StopGate', run: { command: 'x', timeLimitMs: 600_001 } }, false],
  // What is told is held by a lease that must outlive it.
  [{ event: 'Stop', run: { command: 'x', timeLimitMs: 5_001 } }, false],
])('%# a hook is checked', (hook, expected) => {
  expect(hookShape.safeParse(hook).success).toBe(expected);
});
