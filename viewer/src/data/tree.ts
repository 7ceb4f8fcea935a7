// A call tree of bytes as a table in depth-first order: a subtree is a slice, and nothing recurses.
import type { Groups } from './live.ts';
import { type Bytes, type KindIndex, kindName, type Profile, type StackIndex } from './profile.ts';

export type Grouping = 'stack' | 'module' | 'class';
export type Frames = 'program' | 'all';
export type NodeIndex = number; // 0: the root

export interface Tree {
  length: number;
  label: string[];
  detail: string[]; // file and line, the module's class, ...
  parent: Int32Array; // -1: the root's
  depth: Uint16Array;
  end: Int32Array; // one past the last node of the subtree
  start: Float64Array; // bytes left of the node
  bytes: Float64Array;
  byClass: Float64Array; // length * classes
  classes: number;
  blocks: Uint32Array; // how many end in the subtree
  largest: Uint32Array; // the kind of the largest of them
}

export interface Step {
  label: string;
  detail: string;
  plumbing?: boolean;
}

function framesOf(profile: Profile, stack: StackIndex): Step[] {
  const { stacks, frames, strings } = profile;
  const steps: Step[] = [];
  for (let at = stack; at !== 0; at = stacks.parent[at]) {
    const frame = stacks.frame[at];
    if (frame === 0) continue;
    steps.push({
      label: strings[frames.function[frame]],
      detail: strings[frames.place[frame]],
      plumbing: frames.plumbing[frame] === 1,
    });
  }
  return steps.reverse();
}

// Outermost frame first.
export function stackOf(profile: Profile, kind: KindIndex, which: Frames): Step[] {
  const { kinds, strings } = profile;
  let steps = framesOf(profile, kinds.stack[kind]);
  const operator = strings[kinds.operator[kind]];
  if (operator !== '') {
    const forward = framesOf(profile, kinds.forward_stack[kind]);
    steps = [
      ...forward,
      { label: operator, detail: 'autograd node of this forward', plumbing: false },
      ...steps,
    ];
  }
  if (which === 'all') return steps;
  const program = steps.filter((step) => !step.plumbing);
  return program.length > 0 ? program : steps;
}

// The module that a block belongs to: the owner of the parameter it is named after, else where it was allocated.
export function modulePathOf(profile: Profile, kind: KindIndex): string | undefined {
  const { kinds, strings } = profile;
  const name = strings[kinds.names[kind]].split(', ')[0];
  if (name !== '') return name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : '';
  return kinds.module_class[kind] === 0 ? undefined : strings[kinds.module[kind]];
}

function modulePath(profile: Profile, kind: KindIndex): Step[] {
  const { kinds, strings, phases } = profile;
  const path = modulePathOf(profile, kind);
  if (path === undefined) {
    const place = stackOf(profile, kind, 'program').at(-1);
    const steps = [
      { label: 'outside of modules', detail: '' },
      { label: phases[kinds.phase[kind]], detail: 'phase' },
    ];
    return place ? [...steps, place] : steps;
  }
  const steps = [{ label: 'model', detail: '' }];
  if (path !== '') steps.push(...path.split('.').map((label) => ({ label, detail: '' })));
  const last = steps[steps.length - 1];
  if (strings[kinds.module[kind]] === path) last.detail = strings[kinds.module_class[kind]];
  return steps;
}

export function pathOf(profile: Profile, by: Grouping, frames: Frames, kind: KindIndex): Step[] {
  const { kinds, classes } = profile;
  const memoryClass = {
    label: classes[kinds.class[kind]].words,
    detail: classes[kinds.class[kind]].meaning,
  };
  const leaf = { label: kindName(profile, kind), detail: '' };
  switch (by) {
    case 'stack':
      return [...stackOf(profile, kind, frames), leaf];
    case 'module':
      return [...modulePath(profile, kind), memoryClass, leaf];
    case 'class':
      return [memoryClass, ...modulePath(profile, kind).slice(0, 3), leaf];
  }
}

export interface Draft {
  step: Step;
  parent: number;
  depth: number;
  children: Map<string, number>;
  bytes: Bytes;
  byClass: Float64Array;
  blocks: number;
  largest: KindIndex;
}

// A tree that grows path by path.
export class Drafts {
  readonly all: Draft[] = [];
  constructor(private readonly classes: number) {
    this.add({ label: 'all', detail: '' }, -1, 0, 0);
  }

  private add(step: Step, parent: number, depth: number, largest: KindIndex): number {
    this.all.push({
      step,
      parent,
      depth,
      children: new Map(),
      bytes: 0,
      byClass: new Float64Array(this.classes),
      blocks: 0,
      largest,
    });
    return this.all.length - 1;
  }

  // The node at the end of a path, made where it is missing. Nodes are the same where `keyOf` says so.
  leaf(path: readonly Step[], keyOf: (step: Step) => string, kind: KindIndex): number {
    let at = 0;
    for (const [depth, step] of path.entries()) {
      const key = keyOf(step);
      let child = this.all[at].children.get(key);
      if (child === undefined) {
        child = this.add(step, at, depth + 1, kind);
        this.all[at].children.set(key, child);
      }
      if (this.all[child].step.detail === '') this.all[child].step = step;
      at = child;
    }
    return at;
  }

  // From a node up to the root.
  *upFrom(leaf: number): Generator<Draft> {
    for (let at = leaf; at >= 0; at = this.all[at].parent) yield this.all[at];
  }
}

// Children stand largest first, so the eye meets what matters on the left.
export function buildTree(
  profile: Profile,
  groups: Groups,
  by: Grouping,
  inverted: boolean,
  frames: Frames = 'all',
): Tree {
  const drafts = new Drafts(profile.classes.length);
  drafts.all[0].largest = groups.kinds[0] ?? 0;
  // A module is one box whatever its class is known to be; a function at two lines is two.
  const keyOf = (step: Step) => (by === 'stack' ? `${step.label}\n${step.detail}` : step.label);
  groups.kinds.forEach((kind, group) => {
    const path = pathOf(profile, by, frames, kind);
    const leaf = drafts.leaf(inverted ? path.reverse() : path, keyOf, kind);
    for (const draft of drafts.upFrom(leaf)) {
      draft.bytes += groups.bytes[group];
      draft.byClass[profile.kinds.class[kind]] += groups.bytes[group];
      draft.blocks += groups.counts[group];
      if (profile.kinds.bytes[kind] > profile.kinds.bytes[draft.largest]) draft.largest = kind;
    }
  });
  return flatten(drafts.all, profile.classes.length).tree;
}

// `order`: the draft of each node.
export function flatten(drafts: readonly Draft[], classes: number): { tree: Tree; order: Int32Array } {
  const length = drafts.length;
  const tree: Tree = {
    length,
    label: [],
    detail: [],
    parent: new Int32Array(length),
    depth: new Uint16Array(length),
    end: new Int32Array(length),
    start: new Float64Array(length),
    bytes: new Float64Array(length),
    byClass: new Float64Array(length * classes),
    classes,
    blocks: new Uint32Array(length),
    largest: new Uint32Array(length),
  };
  const order = new Int32Array(length);
  const pending: { draft: number; parent: number; start: number }[] = [{ draft: 0, parent: -1, start: 0 }];
  for (let node = 0; pending.length > 0; ++node) {
    const next = pending.pop() as (typeof pending)[number];
    const draft = drafts[next.draft];
    order[node] = next.draft;
    tree.label.push(draft.step.label);
    tree.detail.push(draft.step.detail);
    tree.parent[node] = next.parent;
    tree.depth[node] = draft.depth;
    tree.start[node] = next.start;
    tree.bytes[node] = draft.bytes;
    tree.byClass.set(draft.byClass, node * classes);
    tree.blocks[node] = draft.blocks;
    tree.largest[node] = draft.largest;
    const children = [...draft.children.values()].sort((a, b) => drafts[b].bytes - drafts[a].bytes || a - b);
    let start = next.start;
    const placed = children.map((child) => {
      const place = { draft: child, parent: node, start };
      start += drafts[child].bytes;
      return place;
    });
    pending.push(...placed.reverse());
  }
  for (let node = length - 1; node >= 0; --node) {
    if (tree.end[node] === 0) tree.end[node] = node + 1;
    const parent = tree.parent[node];
    if (parent >= 0) tree.end[parent] = Math.max(tree.end[parent], tree.end[node]);
  }
  return { tree, order };
}

// Labels from the root's child down to the node: what the URL holds, since indexes change with the selection.
export function pathTo(tree: Tree, node: NodeIndex): string[] {
  const labels: string[] = [];
  for (let at = node; at > 0; at = tree.parent[at]) labels.push(tree.label[at]);
  return labels.reverse();
}

// The node that a path names, or the last one of it that exists.
export function findPath(tree: Tree, path: readonly string[]): NodeIndex {
  let at = 0;
  for (const label of path) {
    let child = at + 1;
    while (child < tree.end[at] && tree.label[child] !== label) child = tree.end[child];
    if (child >= tree.end[at]) return at;
    at = child;
  }
  return at;
}

// Lines like "  attention 12 MiB" for tests and for copying.
export function printTree(tree: Tree, format: (bytes: Bytes) => string): string {
  const lines: string[] = [];
  for (let node = 0; node < tree.length; ++node) {
    lines.push(`${'  '.repeat(tree.depth[node])}${tree.label[node]} ${format(tree.bytes[node])}`);
  }
  return lines.join('\n');
}

// "main;forward;linear 4096", one line a leaf, as flamegraph.pl and speedscope read it.
export function foldedStacks(tree: Tree, amount = (node: NodeIndex) => `${tree.bytes[node]}`): string {
  const clean = (text: string) => text.replace(/[;\n]/g, ',');
  const lines: string[] = [];
  for (let node = 1; node < tree.length; ++node) {
    if (tree.end[node] !== node + 1 || tree.bytes[node] === 0) continue;
    lines.push(`${pathTo(tree, node).map(clean).join(';')} ${amount(node)}`);
  }
  return `${lines.join('\n')}\n`;
}

// Where an arrow key leads from a node; undefined: the key is none of them.
export function besides(tree: Tree, at: NodeIndex, key: string, flipped: boolean): NodeIndex | undefined {
  const down = flipped ? 'ArrowUp' : 'ArrowDown';
  const up = flipped ? 'ArrowDown' : 'ArrowUp';
  const parent = tree.parent[at];
  if (key === down) return at + 1 < tree.end[at] ? at + 1 : at;
  if (key === up) return Math.max(0, parent);
  if (key === 'ArrowRight') return parent >= 0 && tree.end[at] < tree.end[parent] ? tree.end[at] : at;
  if (key === 'ArrowLeft') {
    if (parent < 0 || at === parent + 1) return at;
    let sibling = parent + 1;
    while (tree.end[sibling] < at) sibling = tree.end[sibling];
    return sibling;
  }
  return undefined;
}
