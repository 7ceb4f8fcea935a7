// The memory taken from the driver at an instant, and the blocks and holes in it.
import { upperBound } from './curve.ts';
import {
  type BlockIndex,
  type Bytes,
  blockAddress,
  blockBytes,
  kNever,
  type Profile,
  type Tick,
} from './profile.ts';

export interface Piece {
  offset: Bytes; // from the segment's begin
  bytes: Bytes;
  block: BlockIndex; // -1: a hole
}

export interface SegmentMap {
  index: number; // in the table of segments; neighbouring mapped pages are joined under the first
  address: number;
  bytes: Bytes;
  caching: boolean;
  caller: string;
  live: Bytes;
  pieces: Piece[];
}

const aliveAt = (allocated: number, freed: number, tick: Tick) =>
  allocated <= tick && (freed === kNever || tick < freed);

// By address.
export function segmentsAt(profile: Profile, device: number, tick: Tick): SegmentMap[] {
  const { segments, blocks, kinds, strings } = profile;
  const maps: SegmentMap[] = [];
  const alive: number[] = [];
  for (let i = 0; i < segments.length; ++i) {
    if (segments.device[i] === device && aliveAt(segments.allocated[i], segments.freed[i], tick))
      alive.push(i);
  }
  alive.sort((a, b) => segments.address[a] - segments.address[b]);
  for (const i of alive) {
    const caching = segments.caching[i] === 1;
    maps.push({
      index: i,
      address: segments.address[i],
      bytes: segments.bytes[i],
      caching,
      caller: strings[segments.caller[i]],
      live: 0,
      pieces: [],
    });
  }
  const found: BlockIndex[] = [];
  for (let block = 0; block < upperBound(blocks.allocated, tick); ++block) {
    if (tick < blocks.freed[block] && kinds.device[blocks.kind[block]] === device) found.push(block);
  }
  const live = Uint32Array.from(found).sort((a, b) => blockAddress(profile, a) - blockAddress(profile, b));
  let next = 0;
  for (const map of maps) {
    const end = map.address + map.bytes;
    let at = map.address;
    while (next < live.length && blockAddress(profile, live[next]) < map.address) ++next;
    for (; next < live.length && blockAddress(profile, live[next]) < end; ++next) {
      const block = live[next];
      const begin = blockAddress(profile, block);
      if (begin > at) map.pieces.push({ offset: at - map.address, bytes: begin - at, block: -1 });
      const bytes = Math.min(kinds.block_bytes[blocks.kind[block]], end - begin);
      map.pieces.push({ offset: begin - map.address, bytes, block });
      map.live += bytes;
      at = Math.max(at, begin + bytes);
    }
    if (at < end) map.pieces.push({ offset: at - map.address, bytes: end - at, block: -1 });
  }
  return maps;
}

// What keeps a segment from going back to the driver: its live blocks, largest first. The caching allocator can
// give back only segments without any.
export function pinsOf(profile: Profile, map: SegmentMap): BlockIndex[] {
  const blocks = map.pieces.filter((piece) => piece.block >= 0).map((piece) => piece.block);
  return blocks.sort((a, b) => blockBytes(profile, b) - blockBytes(profile, a) || a - b);
}

// The block that an arrow key leads to from another: right and left along the memory, down and up to the next
// segment that holds one. -1: there is none.
export function blockBeside(maps: readonly SegmentMap[], block: BlockIndex, key: string): BlockIndex {
  const rows = maps
    .map((map) => map.pieces.filter((piece) => piece.block >= 0).map((piece) => piece.block))
    .filter((row) => row.length > 0);
  const row = rows.findIndex((blocks) => blocks.includes(block));
  if (row < 0) return rows[0]?.[0] ?? -1;
  const flat = rows.flat();
  const at = flat.indexOf(block);
  switch (key) {
    case 'ArrowRight':
      return flat[Math.min(flat.length - 1, at + 1)];
    case 'ArrowLeft':
      return flat[Math.max(0, at - 1)];
    case 'ArrowDown':
      return rows[Math.min(rows.length - 1, row + 1)][0];
    default:
      return rows[Math.max(0, row - 1)][0];
  }
}
