import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { execFileSync } from 'node:child_process';

/** A process that can't be mistaken for a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time as the system counts it; empty where it could not be read. */
  readonly started: string;
}

export interface HostIdentity {
  readonly host: string;
  /** Changes with every boot. */
  readonly boot: string;
}

export function thisHost(): HostIdentity {
  return { host: hostname(), boot: bootId() };
}

export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, started: startedAt(process.pid) ?? '' };
}

/** Start time of a process, or nothing if there is none (a zombie counts as none). */
export function startedAt(pid: number): string | null {
  if (process.platform !== 'linux') return startedByPs(pid);
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold anything: fields count from behind the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

/** True only if this very process is certainly gone. */
export function isGone(process: ProcessIdentity): boolean {
  return startedAt(process.pid) !== process.started;
}

function startedByPs(pid: number): string | null {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || null;
  } catch {
    return null;
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return execFileSync('sysctl', ['-n', 'kern.boottime'], { encoding: 'utf8' }).trim();
  }
}
