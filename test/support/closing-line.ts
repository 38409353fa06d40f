import type { Reporter, TestModule } from 'vitest/node';

/** Ends a run with the plain line `N passed, N failed`, which CI sums up. */
export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: 'passed' | 'failed') => tests.filter((test) => test.result().state === state).length;
    // A file or a hook that fails, or an error that no test caught, fails the run though no test did.
    const broken = modules.filter((module) => module.state() === 'failed' && !hasFailedTest(module)).length;
    process.stdout.write(`${count('passed')} passed, ${count('failed') + broken + unhandled.length} failed\n`);
  }
}

function hasFailedTest(module: TestModule): boolean {
  return [...module.children.allTests('failed')].length > 0;
}
