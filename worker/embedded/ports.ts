import { connect, createServer } from 'node:net';
import { SetupError } from '../setup-error.ts';

export interface PortWish {
  /** Asked for by name: this one or none. */
  readonly asked: number | undefined;
  readonly usual: number;
  /** What the port is for, and how to ask for another. */
  readonly purpose: string;
}

/** A port of 127.0.0.1 that was free a moment ago. */
export async function choosePort(wish: PortWish): Promise<number> {
  if (wish.asked === undefined) return (await tryPort(wish.usual)) ?? (await anyPort());
  const port = await tryPort(wish.asked);
  if (port !== null) return port;
  throw new SetupError(`Port ${wish.asked} for ${wish.purpose} is in use: end what uses it, or ask for another port.`);
}

/** Whether somebody listens at `host:port`. */
export function isOpen(address: string): Promise<boolean> {
  const [host = '', port] = address.split(':');
  return new Promise((resolve) => {
    const socket = connect(Number(port), host, () => resolve(true));
    socket.on('connect', () => socket.destroy());
    socket.on('error', () => resolve(false));
  });
}

async function anyPort(): Promise<number> {
  const port = await tryPort(0);
  if (port === null) throw new SetupError('No free port was found on 127.0.0.1.');
  return port;
}

function tryPort(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : null));
    });
  });
}
