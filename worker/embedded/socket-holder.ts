import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The process that listens on an abstract socket, in words; best effort, for an error message. */
export function describeHolder(address: string): string {
  const name = `@${address.slice(1)}`;
  try {
    const line = readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .find((row) => row.endsWith(` ${name}`));
    const inode = line?.trim().split(/\s+/)[6];
    const pid =
      inode === undefined ? undefined : readdirSync('/proc').find((entry) => holds(entry, `socket:[${inode}]`));
    if (pid !== undefined) {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim().slice(0, 80);
      return `process ${pid} (${command})`;
    }
  } catch {
    // not Linux, or not ours to see
  }
  return `whoever listens on ${name}`;
}

/** Whether a process of this group listens on the port of 127.0.0.1; null where the system does not tell. */
export function listensOn(group: number, port: number): boolean | null {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const sockets = tcpSockets();
  if (sockets === null) return null;
  const row = sockets.find((fields) => fields[1] === local && fields[3] === LISTEN);
  if (row === undefined) return false;
  return readdirSync('/proc').some((pid) => groupOf(pid) === group && holds(pid, `socket:[${row[9]}]`));
}

function tcpSockets(): string[][] | null {
  try {
    const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n');
    return rows.map((row) => row.trim().split(/\s+/));
  } catch {
    return null;
  }
}

/** The state in /proc/net/tcp. */
const LISTEN = '0A';

function groupOf(pid: string): number | null {
  if (!/^\d+$/.test(pid)) return null;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]);
  } catch {
    return null;
  }
}

function holds(pid: string, socket: string): boolean {
  if (!/^\d+$/.test(pid)) return false;
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => link(`/proc/${pid}/fd/${fd}`) === socket);
  } catch {
    return false;
  }
}

function link(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
