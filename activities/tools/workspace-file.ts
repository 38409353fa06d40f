import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { Refused } from './answer.ts';
import { openInside, type Place, placeToRead } from './workspace-path.ts';

const CHUNK_BYTES = 65_536;

export interface OpenFile {
  readonly handle: FileHandle;
  readonly place: Place;
  readonly size: number;
}

/** Opens a plain file for reading, hands it over, and closes it whatever happens. */
export async function withFile<T>(workspace: string, given: string, use: (file: OpenFile) => Promise<T>): Promise<T> {
  const place = await placeToRead(workspace, given);
  const handle = await openInside(workspace, place, constants.O_RDONLY);
  try {
    const found = await handle.stat();
    if (found.isDirectory())
      throw new Refused(`${given}: this is a folder. Use list_files to see what is in it.`, 'EISDIR');
    if (!found.isFile()) throw new Refused(`${given}: this is not a plain file, so it can't be read.`, 'not_a_file');
    return await use({ handle, place, size: found.size });
  } finally {
    await handle.close();
  }
}

/** Reads a file from its start, a bounded piece at a time. The buffer is reused: copy what must last. */
export async function* piecesOf(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let position = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** The whole file, refused past a limit. */
export async function readWhole(file: OpenFile, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of piecesOf(file.handle, signal)) {
    size += piece.length;
    if (size > maxBytes) {
      throw new Refused(
        `${file.place.shown}: this file is larger than ${maxBytes} bytes. Change it with the shell.`,
        'too_large',
      );
    }
    pieces.push(Buffer.from(piece));
  }
  return Buffer.concat(pieces);
}

export async function hashOf(file: OpenFile, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of piecesOf(file.handle, signal)) hash.update(piece);
  return hash.digest('hex');
}

export function sha256(data: Buffer | string): string {
  return createHash('sha256').update(data).digest('hex');
}

/** The hash of a file, or nothing if there is none. */
export async function hashIfThere(workspace: string, given: string, signal: AbortSignal): Promise<string | null> {
  try {
    return await withFile(workspace, given, (file) => hashOf(file, signal));
  } catch (error) {
    if (error instanceof Refused && error.note === 'ENOENT') return null;
    throw error;
  }
}
