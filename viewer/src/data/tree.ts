// A call tree of bytes as a table in depth-first order: a subtree is a slice, and nothing recurses.
import {
  type BlockIndex,
  type Bytes,
  blockName,
  type Profile,
  type StackIndex,
  type StringIndex,
} from './profile.ts';

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
  largest: Uint32Array; // the largest of them
}

interface Step {
  label: string;
  detail: string;
  plumbing?: boolean;
}

// A path from the root to a group of equal blocks.
interface Group {
  path: Step[];
  block: BlockIndex; // the largest
  blocks: number;
  bytes: Bytes;
  class: number;
}

// Paths are the same for blocks that share these; there are hundreds of such groups where there are thousands of
// blocks.
function groupKey(profile: Profile, by: Grouping, block: BlockIndex): string {
  const { blocks } = profile;
  const name = by === 'stack' ? blocks.title[block] : `${blocks.names[block]}/${blocks.title[block]}`;
  return [
    blocks.class[block],
    by === 'stack' ? blocks.stack[block] : 0,
    by === 'stack' ? blocks.forward_stack[block] : 0,
    blocks.module[block],
    blocks.module_class[block],
    blocks.operator[block],
    blocks.phase[block],
    name,
  ].join(' ');
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
      plumbing: isPlumbing(strings[frames.function[frame]], frames.place[frame], strings[frames.file[frame]]),
    });
  }
  return steps.reverse();
}

// Native frames, and what torch and its users wrap around every call: true of any program, so it says nothing of
// this one. A wrapper in the program's own files stays.
function isPlumbing(name: string, place: StringIndex, file: string): boolean {
  if (place === 0) return true;
  if (!file.includes('-packages/')) return false;
  return /(^|\.)_(wrapped_)?call_impl$|<locals>\.(.*\.)?(_?wrap|inner|decorate_context|_use_grad)|^_use_grad|\.profile_hook_step/.test(
    name,
  );
}

// Outermost frame first.
export function stackOf(profile: Profile, block: BlockIndex, which: Frames): Step[] {
  const { blocks, strings } = profile;
  let steps = framesOf(profile, blocks.stack[block]);
  const operator = strings[blocks.operator[block]];
  if (operator !== '') {
    const forward = framesOf(profile, blocks.forward_stack[block]);
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
export function modulePathOf(profile: Profile, block: BlockIndex): string | undefined {
  const { blocks, strings } = profile;
  const name = strings[blocks.names[block]].split(', ')[0];
  if (name !== '') return name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : '';
  return blocks.module_class[block] === 0 ? undefined : strings[blocks.module[block]];
}

function modulePath(profile: Profile, block: BlockIndex): Step[] {
  const { blocks, strings, phases } = profile;
  const path = modulePathOf(profile, block);
  if (path === undefined) {
    const place = stackOf(profile, block, 'program').at(-1);
    const steps = [
      { label: 'outside of modules', detail: '' },
      { label: phases[blocks.phase[block]], detail: 'phase' },
    ];
    return place ? [...steps, place] : steps;
  }
  const steps = [{ label: 'model', detail: '' }];
  if (path !== '') steps.push(...path.split('.').map((label) => ({ label, detail: '' })));
  const last = steps[steps.length - 1];
  if (strings[blocks.module[block]] === path) last.detail = strings[blocks.module_class[block]];
  return steps;
}

function pathOf(profile: Profile, by: Grouping, frames: Frames, block: BlockIndex): Step[] {
  const { blocks, classes } = profile;
  const memoryClass = {
    label: classes[blocks.class[block]].words,
    detail: classes[blocks.class[block]].meaning,
  };
  const leaf = { label: blockName(profile, block), detail: '' };
  switch (by) {
    case 'stack':
      return [...stackOf(profile, block, frames), leaf];
    case 'module':
      return [...modulePath(profile, block), memoryClass, leaf];
    case 'class':
      return [memoryClass, ...modulePath(profile, block).slice(0, 3), leaf];
  }
}

function groupsOf(profile: Profile, rows: Uint32Array, by: Grouping, frames: Frames): Group[] {
  const groups = new Map<string, Group>();
  for (const block of rows) {
    const key = groupKey(profile, by, block);
    const group = groups.get(key);
    if (group === undefined) {
      const bytes = profile.blocks.bytes[block];
      groups.set(key, {
        path: pathOf(profile, by, frames, block),
        block,
        blocks: 1,
        bytes,
        class: profile.blocks.class[block],
      });
    } else {
      group.bytes += profile.blocks.bytes[block];
      ++group.blocks;
    }
  }
  return [...groups.values()];
}

interface Draft {
  step: Step;
  parent: number;
  depth: number;
  children: Map<string, number>;
  bytes: Bytes;
  byClass: Float64Array;
  blocks: number;
  largest: BlockIndex;
}

// `rows`: largest first. Children stand largest first, so the eye meets what matters on the left.
export function buildTree(
  profile: Profile,
  rows: Uint32Array,
  by: Grouping,
  inverted: boolean,
  frames: Frames = 'all',
): Tree {
  const classes = profile.classes.length;
  const drafts: Draft[] = [];
  const add = (step: Step, parent: number, depth: number, largest: BlockIndex): number => {
    drafts.push({
      step,
      parent,
      depth,
      children: new Map(),
      bytes: 0,
      byClass: new Float64Array(classes),
      blocks: 0,
      largest,
    });
    return drafts.length - 1;
  };
  add({ label: 'all', detail: '' }, -1, 0, rows[0] ?? 0);
  for (const group of groupsOf(profile, rows, by, frames)) {
    const path = inverted ? group.path.reverse() : group.path;
    let at = 0;
    let depth = 0;
    for (let i = -1; i < path.length; ++i) {
      if (i >= 0) {
        // A module is one box whatever its class is known to be; a function at two lines is two.
        const key = by === 'stack' ? `${path[i].label}\n${path[i].detail}` : path[i].label;
        let child = drafts[at].children.get(key);
        if (child === undefined) {
          child = add(path[i], at, depth + 1, group.block);
          drafts[at].children.set(key, child);
        }
        if (drafts[child].step.detail === '') drafts[child].step = path[i];
        at = child;
        ++depth;
      }
      const draft = drafts[at];
      draft.bytes += group.bytes;
      draft.byClass[group.class] += group.bytes;
      draft.blocks += group.blocks;
      if (profile.blocks.bytes[group.block] > profile.blocks.bytes[draft.largest])
        draft.largest = group.block;
    }
  }
  return flatten(drafts, classes);
}

function flatten(drafts: Draft[], classes: number): Tree {
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
  const pending: { draft: number; parent: number; start: number }[] = [{ draft: 0, parent: -1, start: 0 }];
  for (let node = 0; pending.length > 0; ++node) {
    const next = pending.pop() as (typeof pending)[number];
    const draft = drafts[next.draft];
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
  return tree;
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
