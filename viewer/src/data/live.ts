// Which blocks a selection means.
import {
  type BlockIndex,
  type Bytes,
  type ClassIndex,
  kNever,
  type Profile,
  roundingClass,
  type Tick,
} from './profile.ts';

// `alive`: at `to`. The others ask what a stretch of events did: made in it; made in it and alive after it; freed
// in it.
export type Mode = 'alive' | 'allocated' | 'kept' | 'freed';

export interface Selection {
  device: number;
  mode: Mode;
  from: Tick;
  to: Tick;
}

export function selects(profile: Profile, selection: Selection, block: BlockIndex): boolean {
  const { device, allocated, freed } = profile.blocks;
  if (device[block] !== selection.device) return false;
  const { from, to } = selection;
  const end = freed[block] === kNever ? Number.POSITIVE_INFINITY : freed[block];
  switch (selection.mode) {
    case 'alive':
      return allocated[block] <= to && to < end;
    case 'allocated':
      return allocated[block] >= from && allocated[block] <= to;
    case 'kept':
      return allocated[block] >= from && allocated[block] <= to && to < end;
    case 'freed':
      return end >= from && end <= to;
  }
}

// Largest first. A million rows take a few milliseconds, so nothing is indexed.
export function selectBlocks(
  profile: Profile,
  selection: Selection,
  hidden: ReadonlySet<ClassIndex>,
): Uint32Array {
  const found: BlockIndex[] = [];
  const { length, class: classes, bytes } = profile.blocks;
  for (let block = 0; block < length; ++block) {
    if (!hidden.has(classes[block]) && selects(profile, selection, block)) found.push(block);
  }
  found.sort((a, b) => bytes[b] - bytes[a] || a - b);
  return Uint32Array.from(found);
}

export interface Totals {
  byClass: Float64Array; // tensor bytes; the last place: the allocator's rounding
  blocks: Uint32Array; // by class
  tensorBytes: Bytes;
  blockBytes: Bytes;
}

export function totalsOf(profile: Profile, rows: Uint32Array): Totals {
  const { blocks } = profile;
  const byClass = new Float64Array(profile.classes.length);
  const counts = new Uint32Array(profile.classes.length);
  let tensorBytes = 0;
  let blockBytes = 0;
  for (const row of rows) {
    byClass[blocks.class[row]] += blocks.bytes[row];
    ++counts[blocks.class[row]];
    tensorBytes += blocks.bytes[row];
    blockBytes += blocks.block_bytes[row];
  }
  byClass[roundingClass(profile)] = blockBytes - tensorBytes;
  return { byClass, blocks: counts, tensorBytes, blockBytes };
}

// Of a long trace only some instants have their blocks in the page: the one nearest to `tick`.
export function nearestKeyframe(profile: Profile, tick: Tick): Tick {
  if (profile.complete) return tick;
  let best = profile.keyframes[0] ?? tick;
  for (const keyframe of profile.keyframes) {
    if (Math.abs(keyframe - tick) < Math.abs(best - tick)) best = keyframe;
  }
  return best;
}
