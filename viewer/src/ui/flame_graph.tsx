import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { grouped, share, size } from '../data/format.ts';
import { nextHit, searchTree } from '../data/search.ts';
import { besides, findPath, type NodeIndex, pathTo, type Tree } from '../data/tree.ts';
import type { State } from '../data/url_state.ts';
import { type Box, boxAt, drawFlame, heightOf, kRowHeight, layout, rowTop } from '../draw/flame.ts';
import type { Context } from '../draw/text.ts';
import {
  canvasStyle,
  drawingScale,
  pointOn,
  SaveButtons,
  saveFile,
  useDrawing,
  useWidth,
} from './canvas.tsx';
import { FlameBar } from './flame_bar.tsx';
import { isTyping } from './keys.ts';
import type { Model } from './model.ts';
import { Tooltip } from './tooltip.tsx';

export interface FlameProps {
  model: Model;
  tree: Tree;
  name: string; // of a saved picture
  title: string;
  summary: string; // what a screen reader says first
  label: (node: NodeIndex) => string;
  fill?: (node: NodeIndex) => string; // instead of the classes' colours
  amount?: (node: NodeIndex) => string; // instead of the size
  folded: () => string; // for "save stacks"
  facts: (box: Box) => ComponentChildren;
  onZoom?: (node: NodeIndex) => Partial<State>; // what else changes with a click on a box
  legend?: ComponentChildren; // in the bar
  children?: ComponentChildren; // between the bar and the graph
}

// A tree as a flame graph with its bar: hover, zoom, breadcrumbs, keys, search and saving. What differs between
// one live set and the difference of two is in the props.
export function FlameGraph(props: FlameProps) {
  const { model, tree, label } = props;
  const { profile, state, update, theme } = model;
  const [holder, width] = useWidth(900);
  const [hover, setHover] = useState<{ box: Box; x: number; y: number } | undefined>();
  const [focus, setFocused] = useState(-1);
  const focused = focus < tree.length ? focus : -1;
  const zoom = useMemo(() => findPath(tree, state.zoom), [tree, state.zoom.join('\n')]);
  const boxes = useMemo(() => layout(tree, zoom, width), [tree, zoom, width]);
  const matches = useMemo(() => searchTree(tree, state.search), [tree, state.search]);
  const height = Math.max(heightOf(boxes), 8 * kRowHeight);
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
      fill: props.fill,
      amount: props.amount,
    });
  const canvas = useDrawing(width, height, draw);

  const boxUnder = (event: MouseEvent) => {
    const { x, y } = pointOn(canvas.current, event);
    return boxAt(boxes, x, Math.floor((state.flipped ? height - y : y) / kRowHeight));
  };
  const zoomTo = (node: NodeIndex) => update({ zoom: pathTo(tree, node), ...props.onZoom?.(node) });
  const goTo = (node: NodeIndex) => {
    setFocused(node);
    const row = canvas.current?.parentElement;
    const top = rowTop(tree.depth[node], height, state.flipped) * drawingScale();
    const tall = kRowHeight * drawingScale();
    if (row && (top < row.scrollTop || top + tall > row.scrollTop + row.clientHeight))
      row.scrollTo({ top: top - row.clientHeight / 2 });
  };
  const goToFound = (by: number) => {
    const next = nextHit(matches, focused, by);
    if (next >= 0) goTo(next);
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
    const at = focused >= 0 ? focused : zoom;
    const next = besides(tree, at, event.key, state.flipped);
    if (next !== undefined) goTo(next);
    else if (event.key === 'Enter') zoomTo(at);
    else if (event.key === 'Backspace') update({ zoom: state.zoom.slice(0, -1) });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const amount = (node: NodeIndex) => props.amount?.(node) ?? size(tree.bytes[node]);
  return (
    <>
      <FlameBar model={model} legend={props.legend}>
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
            saveFile(new Blob([props.folded()], { type: 'text/plain' }), 'vramtrace-stacks.folded')
          }
        >
          save stacks
        </button>
        <SaveButtons picture={{ name: props.name, title: props.title, width, height, canvas, draw }} />
      </FlameBar>
      {props.children}
      <div ref={holder} class="canvas-holder">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label={`${props.summary} Arrow keys move, Enter zooms, Backspace goes back.${focused > 0 ? ` ${label(focused)}` : ''}`}
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
      <p class="only-read" role="status">
        {focused > 0 && `${label(focused)}, ${amount(focused)}`}
      </p>
      {hover !== undefined && (
        <Tooltip x={hover.x} y={hover.y}>
          {props.facts(hover.box)}
        </Tooltip>
      )}
    </>
  );
}
