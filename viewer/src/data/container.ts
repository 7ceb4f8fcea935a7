// The data file inside the page: see analyzer/viewer_data/columns.h for its layout.

export type Column = Uint8Array | Uint32Array | Float64Array;

export interface Container {
  header: Record<string, unknown>;
  columns: Map<string, Column>;
}

interface ColumnPlace {
  name: string;
  type: 'u8' | 'u32' | 'f64';
  offset: number;
  count: number;
  coding?: 'difference'; // each value less the one before it, modulo 2^32
}

const kMagic = 'VTVIEW01';
const kSizes = { u8: 1, u32: 4, f64: 8 };

function damaged(what: string): Error {
  return new Error(`The page's data is damaged: ${what}. Write the page again: vramtrace view TRACE`);
}

export function openContainer(buffer: ArrayBuffer): Container {
  if (buffer.byteLength < 16) throw damaged('it is too short');
  const magic = new TextDecoder().decode(new Uint8Array(buffer, 0, 8));
  if (magic !== kMagic) throw damaged(`it begins with ${JSON.stringify(magic)}, not ${kMagic}`);
  const length = Number(new DataView(buffer).getBigUint64(8, true));
  const first = 16 + length;
  if (first > buffer.byteLength) throw damaged('its header is longer than the file');
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 16, length))) as Record<
    string,
    unknown
  >;
  const columns = new Map<string, Column>();
  for (const place of header.columns as ColumnPlace[]) {
    const offset = first + place.offset;
    if (offset + place.count * kSizes[place.type] > buffer.byteLength)
      throw damaged(`column ${place.name} is cut`);
    const column = view(buffer, place.type, offset, place.count);
    if (place.coding === 'difference') for (let i = 1; i < column.length; ++i) column[i] += column[i - 1];
    columns.set(place.name, column);
  }
  return { header, columns };
}

function view(buffer: ArrayBuffer, type: ColumnPlace['type'], offset: number, count: number): Column {
  switch (type) {
    case 'u8':
      return new Uint8Array(buffer, offset, count);
    case 'u32':
      return new Uint32Array(buffer, offset, count);
    case 'f64':
      return new Float64Array(buffer, offset, count);
  }
}

// base64 of gzip, as the page holds it. Decoded in pieces: one string of the whole would be held three times.
export async function decompress(base64: string): Promise<ArrayBuffer> {
  try {
    return await inflate(base64);
  } catch {
    throw damaged('it cannot be decompressed');
  }
}

function inflate(base64: string): Promise<ArrayBuffer> {
  const kStep = 4 << 18; // a multiple of 4: each piece is base64 of its own
  const pieces = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (let at = 0; at < base64.length; at += kStep) {
        const text = atob(base64.slice(at, at + kStep));
        const bytes = new Uint8Array(text.length);
        for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
        controller.enqueue(bytes);
      }
      controller.close();
    },
  });
  return new Response(pieces.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}
