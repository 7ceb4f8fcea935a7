import { useEffect, useMemo, useState } from 'preact/hooks';
import { grouped, share, size } from '../data/format.ts';
import type { BlockIndex, KindIndex } from '../data/profile.ts';
import { nextHit, searchTree } from '../data/search.ts';
import {
  buildTree,
  findPath,
  foldedStacks,
  type Grouping,
  type NodeIndex,
  pathTo,
  type Tree,
} from '../data/tree.ts';
import { type Box, boxAt, drawFlame, heightOf, kRowHeight, layout, rowTop } from '../draw/flame.ts';
import type { Context } from '../draw/text.ts';
import { BlockFacts } from './block_facts.tsx';
import {
  canvasStyle,
  drawingScale,
  pointOn,
  SaveButtons,
  saveFile,
  useDrawing,
  useWidth,
} from './canvas.tsx';
import { isTyping } from './keys.ts';
import type { Model } from './model.ts';
import { Swatch } from './timeline_view.tsx';
import { Tooltip } from './tooltip.tsx';

const kGroupings: [Grouping, string][] = [
  ['stack', 'by stack'],
  ['module', 'by module'],
  ['class', 'by class'],
];

export function FlameView({ model }: { model: Model }) {
  const { profile, state, update, theme } = model;
  const { groups } = model.selected;
  const [holder, width] = useWidth(900);
  const [hover, setHover] = useState<{ box: Box; x: number; y: number } | undefined>();
  const [focused, setFocused] = useState(-1);
  const tree = useMemo(
    () => buildTree(profile, groups, state.by, state.inverted, state.frames),
    [profile, groups, state.by, state.inverted, state.frames],
  );
  const zoom = useMemo(() => findPath(tree, state.zoom), [tree, state.zoom.join('\n')]);
  const boxes = useMemo(() => layout(tree, zoom, width), [tree, zoom, width]);
  const matches = useMemo(() => searchTree(tree, state.search), [tree, state.search]);
  const height = Math.max(heightOf(boxes), 8 * kRowHeight);
  const label = (node: NodeIndex) =>
    node === 0 ? `${size(tree.bytes[0])} in ${grouped(tree.blocks[0])} blocks` : tree.label[node];
  const draw = (context: Context) =>
    drawFlame(context, {
      tree,
      boxes,
      zoom,
      matches,
      hovered: hover?.box,
      focused,
      classes: profile.classes,
      theme,
      width,
      height,
      flipped: state.flipped,
      label,
    });
  const canvas = useDrawing(width, height, draw);

  const boxUnder = (event: MouseEvent) => {
    const { x, y } = pointOn(canvas.current, event);
    return boxAt(boxes, x, Math.floor((state.flipped ? height - y : y) / kRowHeight));
  };
  const zoomTo = (node: NodeIndex) =>
    update({
      zoom: pathTo(tree, node),
      block: tree.end[node] === node + 1 && node > 0 ? firstOfKind(model, tree.largest[node]) : state.block,
    });
  const goToFound = (by: number) => {
    const next = nextHit(matches, focused, by);
    if (next < 0) return;
    setFocused(next);
    const row = canvas.current?.parentElement;
    const top = rowTop(tree.depth[next], height, state.flipped) * drawingScale();
    row?.scrollTo({ top: top - row.clientHeight / 2 });
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || (event.key !== 'n' && event.key !== 'N')) return;
      goToFound(event.key === 'n' ? 1 : -1);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const at = focused >= 0 && focused < tree.length ? focused : zoom;
    const next = step(tree, at, event.key, state.flipped);
    if (next !== undefined) setFocused(next);
    else if (event.key === 'Enter') zoomTo(at);
    else if (event.key === 'Backspace') update({ zoom: state.zoom.slice(0, -1) });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="flame">
      <div class="bar">
        <span class="segmented" role="group" aria-label="Grouping">
          {kGroupings.map(([by, words]) => (
            <button
              type="button"
              key={by}
              aria-pressed={state.by === by}
              onClick={() => update({ by, zoom: [] })}
            >
              {words}
            </button>
          ))}
        </span>
        <button
          type="button"
          aria-pressed={state.inverted}
          title="i: innermost first"
          onClick={() => update({ inverted: !state.inverted, zoom: [] })}
        >
          inverted
        </button>
        <button
          type="button"
          aria-pressed={state.flipped}
          onClick={() => update({ flipped: !state.flipped }, 'replace')}
        >
          upwards
        </button>
        {state.by === 'stack' && (
          <button
            type="button"
            aria-pressed={state.frames === 'all'}
            title="Native frames, and what torch wraps around every call"
            onClick={() => update({ frames: state.frames === 'all' ? 'program' : 'all', zoom: [] })}
          >
            all frames
          </button>
        )}
        <Breadcrumbs model={model} />
        <span class="grow" />
        {matches !== undefined && (
          <span class="found">
            <span role="status">
              {grouped(matches.count)} found, {size(matches.bytes)} ({share(matches.bytes, tree.bytes[0])})
            </span>
            <button type="button" aria-label="Previous found (N)" onClick={() => goToFound(-1)}>
              ↑
            </button>
            <button type="button" aria-label="Next found (n)" onClick={() => goToFound(1)}>
              ↓
            </button>
          </span>
        )}
        <button
          type="button"
          title="One line a stack, for other flame graph programs"
          onClick={() =>
            saveFile(new Blob([foldedStacks(tree)], { type: 'text/plain' }), 'vramtrace-stacks.folded')
          }
        >
          save stacks
        </button>
        <SaveButtons
          picture={{ name: 'vramtrace-flame', title: 'flame graph', width, height, canvas, draw }}
        />
      </div>
      <div ref={holder} class="canvas-holder">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label={`Flame graph of ${size(tree.bytes[0])}. Arrow keys move, Enter zooms, Backspace goes back.${focused > 0 && focused < tree.length ? ` ${label(focused)}` : ''}`}
          style={canvasStyle(width, height)}
          onMouseMove={(event) => {
            const box = boxUnder(event);
            setHover(box && { box, x: event.clientX, y: event.clientY });
          }}
          onMouseLeave={() => setHover(undefined)}
          onClick={(event) => {
            const box = boxUnder(event);
            if (box !== undefined) zoomTo(box.node < 0 ? box.parent : box.node);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      {groups.blocks === 0 && (
        <p class="empty">Nothing of what is selected: no block, or every class is hidden.</p>
      )}
      {hover !== undefined && (
        <Tooltip x={hover.x} y={hover.y}>
          <BoxFacts model={model} tree={tree} box={hover.box} />
        </Tooltip>
      )}
    </div>
  );
}

// Any block of the selection that is of this kind.
function firstOfKind(model: Model, kind: KindIndex): BlockIndex {
  return model.selected.rows.find((row) => model.profile.blocks.kind[row] === kind) ?? -1;
}

// Where an arrow key leads from a node; undefined: the key is none of them.
function step(tree: Tree, at: NodeIndex, key: string, flipped: boolean): NodeIndex | undefined {
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

function Breadcrumbs({ model }: { model: Model }) {
  const { state, update } = model;
  if (state.zoom.length === 0) return null;
  const first = Math.max(0, state.zoom.length - 3);
  return (
    <nav class="breadcrumbs" aria-label="Zoomed to">
      <button type="button" onClick={() => update({ zoom: [] })}>
        all
      </button>
      {first > 0 && <span>…</span>}
      {state.zoom.slice(first).map((label, i) => (
        <button
          type="button"
          key={`${first + i}`}
          onClick={() => update({ zoom: state.zoom.slice(0, first + i + 1) })}
        >
          {label}
        </button>
      ))}
    </nav>
  );
}

function BoxFacts({ model, tree, box }: { model: Model; tree: Tree; box: Box }) {
  const { profile } = model;
  if (box.node < 0) {
    return (
      <>
        <strong>{grouped(box.merged)} smaller boxes</strong>
        <div>
          {size(box.bytes)}, {share(box.bytes, tree.bytes[0])}. Zoom in to see them.
        </div>
      </>
    );
  }
  const node = box.node;
  const classes = [...profile.classes.keys()].filter((band) => tree.byClass[node * tree.classes + band] > 0);
  classes.sort((a, b) => tree.byClass[node * tree.classes + b] - tree.byClass[node * tree.classes + a]);
  const leaf = tree.end[node] === node + 1 && node > 0;
  return (
    <>
      <strong class="wrap">{tree.label[node]}</strong>
      {tree.detail[node] !== '' && <div class="faint wrap">{tree.detail[node]}</div>}
      <div>
        {size(tree.bytes[node])} <span class="faint">{grouped(tree.bytes[node])} B</span>,{' '}
        {share(tree.bytes[node], tree.bytes[0])}, {grouped(tree.blocks[node])}{' '}
        {tree.blocks[node] === 1 ? 'block' : 'blocks'}
      </div>
      <table class="facts">
        <tbody>
          {classes.slice(0, 6).map((band) => (
            <tr key={band}>
              <td>
                <Swatch model={model} band={band} /> {profile.classes[band].words}
              </td>
              <td class="number">{size(tree.byClass[node * tree.classes + band])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {leaf && <BlockFacts model={model} block={-1} kind={tree.largest[node]} short />}
    </>
  );
}
