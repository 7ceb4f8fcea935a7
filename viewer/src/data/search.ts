// Plain substring search, as a browser's own: every word must occur somewhere on the path.
import type { Bytes } from './profile.ts';
import type { Tree } from './tree.ts';

export interface Matches {
  // A node that matches, or is below one that does.
  inside: Uint8Array;
  // What a word of the query occurs in.
  hit: Uint8Array;
  count: number; // of nodes that match themselves
  bytes: Bytes; // under them, each byte once
}

export function wordsOf(query: string): string[] {
  return query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
}

export function matchesText(words: readonly string[], text: string): boolean {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}

export function searchTree(tree: Tree, query: string): Matches | undefined {
  const words = wordsOf(query);
  if (words.length === 0) return undefined;
  const all = (1 << Math.min(words.length, 30)) - 1;
  const seen = new Uint32Array(tree.length);
  const matches: Matches = {
    inside: new Uint8Array(tree.length),
    hit: new Uint8Array(tree.length),
    count: 0,
    bytes: 0,
  };
  let counted = 0; // bytes of subtrees before this node are counted already
  for (let node = 0; node < tree.length; ++node) {
    const text = `${tree.label[node]} ${tree.detail[node]}`.toLowerCase();
    let own = 0;
    for (let i = 0; i < Math.min(words.length, 30); ++i) if (text.includes(words[i])) own |= 1 << i;
    seen[node] = own | (node === 0 ? 0 : seen[tree.parent[node]]);
    if (seen[node] !== all) continue;
    matches.inside[node] = 1;
    if (own === 0) continue;
    matches.hit[node] = 1;
    ++matches.count;
    if (node >= counted) {
      matches.bytes += tree.bytes[node];
      counted = tree.end[node];
    }
  }
  return matches;
}

// The match after or before a node, around the ends; -1: there is none.
export function nextHit(matches: Matches | undefined, from: number, by: number): number {
  if (matches === undefined || matches.count === 0) return -1;
  const length = matches.hit.length;
  let at = from < 0 && by < 0 ? length : from;
  do at = (at + by + length) % length;
  while (matches.hit[at] === 0);
  return at;
}
