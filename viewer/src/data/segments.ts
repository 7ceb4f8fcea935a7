// The memory taken from the driver at an instant, and the blocks and holes in it.
import { type BlockIndex, type Bytes, kNever, type Profile, type Tick } from './profile.ts';

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
  const { segments, blocks, strings } = profile;
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
  const live: BlockIndex[] = [];
  for (let block = 0; block < blocks.length; ++block) {
    if (blocks.device[block] === device && aliveAt(blocks.allocated[block], blocks.freed[block], tick))
      live.push(block);
  }
  live.sort((a, b) => blocks.address[a] - blocks.address[b]);
  let next = 0;
  for (const map of maps) {
    const end = map.address + map.bytes;
    let at = map.address;
    while (next < live.length && blocks.address[live[next]] < map.address) ++next;
    for (; next < live.length && blocks.address[live[next]] < end; ++next) {
      const block = live[next];
      const begin = blocks.address[block];
      if (begin > at) map.pieces.push({ offset: at - map.address, bytes: begin - at, block: -1 });
      const bytes = Math.min(blocks.block_bytes[block], end - begin);
      map.pieces.push({ offset: begin - map.address, bytes, block });
      map.live += bytes;
      at = Math.max(at, begin + bytes);
    }
    if (at < end) map.pieces.push({ offset: at - map.address, bytes: end - at, block: -1 });
  }
  return maps;
}
