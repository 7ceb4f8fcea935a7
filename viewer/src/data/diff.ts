// Two live sets in one tree: what grew and what shrank.
import type { Groups } from './live.ts';
import type { Bytes, Profile } from './profile.ts';
import {
  Drafts,
  type Frames,
  flatten,
  foldedStacks,
  type Grouping,
  pathOf,
  type Step,
  type Tree,
} from './tree.ts';

// `bytes`, the width, is the larger of the two for every leaf, so that what is gone has room too.
export interface DiffTree extends Tree {
  before: Float64Array;
  after: Float64Array;
}

export function buildDiff(
  before: Profile,
  beforeGroups: Groups,
  after: Profile,
  afterGroups: Groups,
  by: Grouping,
  inverted: boolean,
  frames: Frames,
): DiffTree {
  const classes = after.classes.length;
  const drafts = new Drafts(classes);
  const own: [Bytes, Bytes][] = [];
  const sums: [Bytes, Bytes][] = [];
  // Lines move between two versions of a program: a function is the same wherever it stands.
  const keyOf = (step: Step) => step.label;
  for (const [side, profile, groups] of [
    [1, after, afterGroups],
    [0, before, beforeGroups],
  ] as const) {
    groups.kinds.forEach((kind, group) => {
      const path = pathOf(profile, by, frames, kind);
      const leaf = drafts.leaf(inverted ? path.reverse() : path, keyOf, kind);
      own[leaf] ??= [0, 0];
      own[leaf][side] += groups.bytes[group];
      for (let at = leaf; at >= 0; at = drafts.all[at].parent) {
        sums[at] ??= [0, 0];
        sums[at][side] += groups.bytes[group];
        if (side === 1) drafts.all[at].byClass[profile.kinds.class[kind]] += groups.bytes[group];
      }
    });
  }
  own.forEach((bytes, leaf) => {
    for (const draft of drafts.upFrom(leaf)) draft.bytes += Math.max(...bytes);
  });
  const { tree, order } = flatten(drafts.all, classes);
  const side = (which: 0 | 1) => Float64Array.from(order, (draft) => sums[draft]?.[which] ?? 0);
  return { ...tree, before: side(0), after: side(1) };
}

// "main;forward;linear 4096 8192", before and after, as flamegraph.pl's difffolded.pl writes it.
export function foldedDifference(tree: DiffTree): string {
  return foldedStacks(tree, (node) => `${tree.before[node]} ${tree.after[node]}`);
}

export interface ClassDifference {
  key: string;
  words: string;
  before: Bytes;
  after: Bytes;
}

// Largest change first.
export function classDifferences(
  profile: Profile,
  before: Float64Array,
  after: Float64Array,
): ClassDifference[] {
  return profile.classes
    .map(({ key, words }, band) => ({ key, words, before: before[band], after: after[band] }))
    .filter((row) => row.before !== 0 || row.after !== 0)
    .sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));
}
