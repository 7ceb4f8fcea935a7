// Which blocks a selection means.
import { upperBound } from './curve.ts';
import {
  type BlockTable,
  type Bytes,
  type ClassIndex,
  type KindIndex,
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

// The blocks of a selection by what they have in common, largest first: all that trees and sums need.
export interface Groups {
  kinds: Uint32Array;
  counts: Uint32Array;
  bytes: Float64Array; // of tensors
  blocks: number;
}

export interface Selected {
  rows: Uint32Array; // in the order of their allocation
  groups: Groups;
}

// One loop over the table, in its order: five million rows take some 20 ms, so nothing is indexed.
export function selectBlocks(
  profile: Profile,
  selection: Selection,
  hidden: ReadonlySet<ClassIndex>,
): Selected {
  const { kinds, blocks } = profile;
  const wanted = new Uint8Array(kinds.length);
  for (let kind = 0; kind < kinds.length; ++kind)
    wanted[kind] = kinds.device[kind] === selection.device && !hidden.has(kinds.class[kind]) ? 1 : 0;
  const counts = new Uint32Array(kinds.length);
  const rows = matching(blocks, selection, (kind) => wanted[kind] === 1);
  for (const row of rows) ++counts[blocks.kind[row]];
  return { rows, groups: groupsOf(profile, counts, rows.length) };
}

function matching(
  blocks: BlockTable,
  selection: Selection,
  wanted: (kind: KindIndex) => boolean,
): Uint32Array {
  const { mode, from, to } = selection;
  const { kind, allocated, freed, length } = blocks;
  // Rows are in the order of their allocation.
  const end = upperBound(allocated, to);
  const begin = mode === 'allocated' || mode === 'kept' ? upperBound(allocated, from - 1) : 0;
  let found = new Uint32Array(1024);
  let count = 0;
  for (let block = begin; block < Math.min(end, length); ++block) {
    const ended = freed[block] <= to; // kNever is after any tick
    if (mode === 'freed' ? !ended || freed[block] < from : mode !== 'allocated' && ended) continue;
    if (!wanted(kind[block])) continue;
    if (count === found.length) {
      const larger = new Uint32Array(2 * count);
      larger.set(found);
      found = larger;
    }
    found[count++] = block;
  }
  return found.subarray(0, count);
}

export function groupsOf(profile: Profile, counts: Uint32Array, blocks: number): Groups {
  const sizes = profile.kinds.bytes;
  const kinds: KindIndex[] = [];
  for (let kind = 0; kind < counts.length; ++kind) if (counts[kind] > 0) kinds.push(kind);
  kinds.sort((a, b) => sizes[b] - sizes[a] || a - b);
  return {
    kinds: Uint32Array.from(kinds),
    counts: Uint32Array.from(kinds, (kind) => counts[kind]),
    bytes: Float64Array.from(kinds, (kind) => counts[kind] * sizes[kind]),
    blocks,
  };
}

// Largest first, as tables show them.
export function bySize(profile: Profile, rows: Uint32Array): Uint32Array {
  const { kind } = profile.blocks;
  const sizes = profile.kinds.bytes;
  return rows.slice().sort((a, b) => sizes[kind[b]] - sizes[kind[a]] || a - b);
}

export interface Totals {
  byClass: Float64Array; // tensor bytes; the last place: the allocator's rounding
  blocks: Uint32Array; // by class
  tensorBytes: Bytes;
  blockBytes: Bytes;
  unsureBytes: Bytes; // tensors whose class is not certain
}

export function totalsOf(profile: Profile, groups: Groups): Totals {
  const { kinds } = profile;
  const certain = profile.confidences.indexOf('high');
  const totals: Totals = {
    byClass: new Float64Array(profile.classes.length),
    blocks: new Uint32Array(profile.classes.length),
    tensorBytes: 0,
    blockBytes: 0,
    unsureBytes: 0,
  };
  groups.kinds.forEach((kind, i) => {
    totals.byClass[kinds.class[kind]] += groups.bytes[i];
    totals.blocks[kinds.class[kind]] += groups.counts[i];
    totals.tensorBytes += groups.bytes[i];
    totals.blockBytes += groups.counts[i] * kinds.block_bytes[kind];
    if (kinds.confidence[kind] !== certain) totals.unsureBytes += groups.bytes[i];
  });
  totals.byClass[roundingClass(profile)] = totals.blockBytes - totals.tensorBytes;
  return totals;
}

// Whether the page holds every block that lives between two ticks.
export function holdsAll(profile: Profile, from: Tick, to: Tick): boolean {
  return profile.complete || profile.detail.some(([first, last]) => first <= from && to <= last);
}

// Of a long trace only some instants have their blocks in the page: the one nearest to `tick`.
export function nearestKeyframe(profile: Profile, tick: Tick): Tick {
  if (holdsAll(profile, tick, tick)) return tick;
  let best = profile.keyframes[0] ?? tick;
  for (const keyframe of [...profile.keyframes, ...profile.detail.flat()]) {
    if (Math.abs(keyframe - tick) < Math.abs(best - tick)) best = keyframe;
  }
  return best;
}
