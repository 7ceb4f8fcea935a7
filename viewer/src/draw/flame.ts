// The flame graph: which boxes there are at a size and zoom, and drawing them. What is drawn is bounded by pixels,
// not by nodes: a subtree narrower than a box can be is skipped, and such neighbours are merged into one box.

import { size } from '../data/format.ts';
import type { MemoryClass } from '../data/profile.ts';
import type { Matches } from '../data/search.ts';
import type { NodeIndex, Tree } from '../data/tree.ts';
import { type Context, fitText, textWidth } from './text.ts';
import { classColor, kFont, type Theme, textOn } from './theme.ts';

export const kRowHeight = 20;
const kNarrowest = 2.5; // CSS pixels; anything narrower is merged with its neighbours

export interface Box {
  node: NodeIndex; // -1: merged
  parent: NodeIndex; // of merged ones
  x: number; // CSS pixels
  width: number;
  depth: number;
  merged: number; // nodes in it
  bytes: number;
}

// Boxes of the subtree of `zoom`, which fills `width`, and of the nodes above it. Left to right in every row.
export function layout(tree: Tree, zoom: NodeIndex, width: number): Box[] {
  const boxes: Box[] = [];
  for (let at = tree.parent[zoom]; at >= 0; at = tree.parent[at]) {
    boxes.unshift({
      node: at,
      parent: -1,
      x: 0,
      width,
      depth: tree.depth[at],
      merged: 0,
      bytes: tree.bytes[at],
    });
  }
  const scale = tree.bytes[zoom] > 0 ? width / tree.bytes[zoom] : 0;
  const lastMerged = new Map<number, Box>(); // by depth
  for (let node = zoom; node < tree.end[zoom]; ) {
    const x = (tree.start[node] - tree.start[zoom]) * scale;
    const boxWidth = tree.bytes[node] * scale;
    const depth = tree.depth[node];
    if (boxWidth >= kNarrowest || node === zoom) {
      boxes.push({
        node,
        parent: tree.parent[node],
        x,
        width: boxWidth,
        depth,
        merged: 0,
        bytes: tree.bytes[node],
      });
      ++node;
      continue;
    }
    const last = lastMerged.get(depth);
    if (last !== undefined && last.parent === tree.parent[node]) {
      last.width = x + boxWidth - last.x;
      ++last.merged;
      last.bytes += tree.bytes[node];
    } else {
      const box = {
        node: -1,
        parent: tree.parent[node],
        x,
        width: boxWidth,
        depth,
        merged: 1,
        bytes: tree.bytes[node],
      };
      lastMerged.set(depth, box);
      boxes.push(box);
    }
    node = tree.end[node];
  }
  return boxes;
}

export function boxAt(boxes: readonly Box[], x: number, depth: number): Box | undefined {
  return boxes.find((box) => box.depth === depth && x >= box.x && x < box.x + Math.max(box.width, 1));
}

export function heightOf(boxes: readonly Box[]): number {
  return boxes.reduce((deepest, box) => Math.max(deepest, box.depth + 1), 1) * kRowHeight;
}

export interface FlameScene {
  tree: Tree;
  boxes: readonly Box[];
  zoom: NodeIndex;
  matches: Matches | undefined;
  hovered: Box | undefined;
  focused: NodeIndex; // by the keyboard; -1: none
  classes: readonly MemoryClass[];
  theme: Theme;
  width: number;
  height: number;
  flipped: boolean;
  label: (node: NodeIndex) => string;
  fill?: ((node: NodeIndex) => string) | undefined; // instead of the classes' colours
  amount?: ((node: NodeIndex) => string) | undefined; // instead of the size
}

export function rowTop(depth: number, height: number, flipped: boolean): number {
  return flipped ? height - (depth + 1) * kRowHeight : depth * kRowHeight;
}

export function drawFlame(context: Context, scene: FlameScene): void {
  const { theme, boxes, width, height } = scene;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, height);
  context.font = kFont;
  context.textBaseline = 'middle';
  for (const box of boxes) drawBox(context, scene, box);
  for (const box of boxes) {
    const hovered = box === scene.hovered;
    if (!hovered && (box.node < 0 || box.node !== scene.focused)) continue;
    context.strokeStyle = theme.text;
    context.lineWidth = 2;
    context.strokeRect(
      box.x + 1,
      rowTop(box.depth, height, scene.flipped) + 1,
      Math.max(box.width - 2, 1),
      kRowHeight - 3,
    );
  }
}

function drawBox(context: Context, scene: FlameScene, box: Box): void {
  const { theme, matches } = scene;
  const top = rowTop(box.depth, scene.height, scene.flipped);
  const left = Math.round(box.x);
  const right = Math.max(left + 1, Math.round(box.x + box.width) - 1);
  const tall = kRowHeight - 1;
  if (box.node < 0) {
    context.fillStyle = matches ? theme.dimmed : theme.merged;
    context.fillRect(left, top, right - left, tall);
    return;
  }
  const dimmed = matches !== undefined && matches.inside[box.node] === 0;
  const above = box.depth < scene.tree.depth[scene.zoom];
  const main = dimmed ? theme.dimmed : fillBox(context, scene, box.node, left, right, top, tall);
  if (dimmed) {
    context.fillStyle = theme.dimmed;
    context.fillRect(left, top, right - left, tall);
  }
  if (above) {
    context.globalAlpha = 0.45;
    context.fillStyle = theme.background;
    context.fillRect(left, top, right - left, tall);
    context.globalAlpha = 1;
  }
  const room = right - left - 8;
  const name = scene.label(box.node);
  const text = fitText(context, name, room);
  if (text === '') return;
  const color = dimmed ? theme.faint : above || main === '' ? theme.text : textOn(main);
  context.fillStyle = color;
  const middle = top + tall / 2 + (main === '' && !dimmed ? -1.5 : 0.5);
  context.fillText(text, left + 4, middle);
  const bytes = scene.amount?.(box.node) ?? size(box.bytes);
  if (box.node === 0 || textWidth(context, text) + textWidth(context, bytes) + 14 > room) return;
  context.globalAlpha = 0.75;
  context.textAlign = 'right';
  context.fillText(bytes, right - 5, middle);
  context.textAlign = 'left';
  context.globalAlpha = 1;
}

function fillBox(
  context: Context,
  scene: FlameScene,
  node: NodeIndex,
  left: number,
  right: number,
  top: number,
  tall: number,
): string {
  if (scene.fill === undefined) return fillClasses(context, scene, node, left, right, top, tall);
  context.fillStyle = scene.fill(node);
  context.fillRect(left, top, right - left, tall);
  return context.fillStyle;
}

// The mix of classes: one colour for most boxes; where several classes are inside, a strip along the bottom shows
// their shares and the box itself is plain. Returns the colour that text stands on; '' for the plain one.
function fillClasses(
  context: Context,
  scene: FlameScene,
  node: NodeIndex,
  left: number,
  right: number,
  top: number,
  tall: number,
): string {
  const { tree, classes, theme } = scene;
  const base = node * tree.classes;
  const whole = tree.bytes[node];
  let main = 0;
  for (let i = 1; i < tree.classes; ++i) if (tree.byClass[base + i] > tree.byClass[base + main]) main = i;
  const color = classColor(theme, classes[main].key);
  const pure = whole === 0 || tree.byClass[base + main] >= 0.97 * whole;
  context.fillStyle = pure ? color : theme.merged;
  context.fillRect(left, top, right - left, tall);
  if (pure) return color;
  let x = left;
  let sum = 0;
  for (let i = 0; i < tree.classes; ++i) {
    const bytes = tree.byClass[base + i];
    if (bytes === 0) continue;
    sum += bytes;
    const next = left + Math.round(((right - left) * sum) / whole);
    if (next <= x) continue;
    context.fillStyle = classColor(theme, classes[i].key);
    context.fillRect(x, top + tall - 4, next - x, 4);
    x = next;
  }
  return '';
}
