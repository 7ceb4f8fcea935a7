import { useMemo, useState } from 'preact/hooks';
import { buildDiff, classDifferences, type DiffTree } from '../data/diff.ts';
import { grouped, signed, size } from '../data/format.ts';
import { selectBlocks, totalsOf } from '../data/live.ts';
import type { Profile } from '../data/profile.ts';
import { searchTree } from '../data/search.ts';
import { findPath, type Grouping, type NodeIndex, pathTo } from '../data/tree.ts';
import { type Box, boxAt, drawFlame, heightOf, kRowHeight, layout } from '../draw/flame.ts';
import type { Context } from '../draw/text.ts';
import { changeColor, classColor } from '../draw/theme.ts';
import { canvasStyle, pointOn, SaveButtons, useDrawing, useWidth } from './canvas.tsx';
import { explainedOf, type Model } from './model.ts';
import { Tooltip } from './tooltip.tsx';

const kGroupings: [Grouping, string][] = [
  ['module', 'by module'],
  ['stack', 'by stack'],
  ['class', 'by class'],
];

// This trace's selection against another trace at the instant that its report explains.
export function DiffView({ model, base }: { model: Model; base: Profile }) {
  const { profile, state, update, theme } = model;
  const [holder, width] = useWidth(900);
  const [hover, setHover] = useState<{ box: Box; x: number; y: number } | undefined>();
  const before = useMemo(() => {
    const device = base.devices.includes(model.device) ? model.device : (base.devices[0] ?? 0);
    const { tick } = explainedOf(base, device);
    return selectBlocks(base, { device, mode: 'alive', from: tick, to: tick }, model.hidden).groups;
  }, [base, model.device, model.hidden]);
  const after = model.selected.groups;
  const by = state.by;
  const tree = useMemo(
    () => buildDiff(base, before, profile, after, by, state.inverted, state.frames),
    [base, before, profile, after, by, state.inverted, state.frames],
  );
  const rows = useMemo(
    () => classDifferences(profile, totalsOf(base, before).byClass, totalsOf(profile, after).byClass),
    [base, before, profile, after],
  );
  const zoom = useMemo(() => findPath(tree, state.zoom), [tree, state.zoom.join('\n')]);
  const boxes = useMemo(() => layout(tree, zoom, width), [tree, zoom, width]);
  const matches = useMemo(() => searchTree(tree, state.search), [tree, state.search]);
  const height = Math.max(heightOf(boxes), 8 * kRowHeight);
  const change = (node: NodeIndex) => tree.after[node] - tree.before[node];
  const draw = (context: Context) =>
    drawFlame(context, {
      tree,
      boxes,
      zoom,
      matches,
      hovered: hover?.box,
      focused: -1,
      classes: profile.classes,
      theme,
      width,
      height,
      flipped: state.flipped,
      label: (node) => (node === 0 ? `${signed(change(0))} in all` : tree.label[node]),
      fill: (node) => changeColor(theme, tree.bytes[node] === 0 ? 0 : change(node) / tree.bytes[node]),
      amount: (node) => (change(node) === 0 ? '=' : signed(change(node))),
    });
  const canvas = useDrawing(width, height, draw);
  const boxUnder = (event: MouseEvent) => {
    const { x, y } = pointOn(canvas.current, event);
    return boxAt(boxes, x, Math.floor((state.flipped ? height - y : y) / kRowHeight));
  };
  return (
    <div class="flame diff">
      <div class="bar">
        <span class="segmented" role="group" aria-label="Grouping">
          {kGroupings.map(([grouping, words]) => (
            <button
              type="button"
              key={grouping}
              aria-pressed={by === grouping}
              onClick={() => update({ by: grouping, zoom: [] })}
            >
              {words}
            </button>
          ))}
        </span>
        <span>
          <span class="swatch" style={{ background: changeColor(theme, 1) }} /> more than in{' '}
          <strong>{base.name}</strong>
        </span>
        <span>
          <span class="swatch" style={{ background: changeColor(theme, -1) }} /> less
        </span>
        {state.zoom.length > 0 && (
          <button type="button" onClick={() => update({ zoom: state.zoom.slice(0, -1) })}>
            ‹ back
          </button>
        )}
        <span class="grow" />
        <SaveButtons
          picture={{ name: 'vramtrace-difference', title: 'difference', width, height, canvas, draw }}
        />
      </div>
      <table class="facts differences" aria-label="Difference by class">
        <thead>
          <tr>
            <th>class</th>
            <th class="number">{base.name}</th>
            <th class="number">{profile.name}</th>
            <th class="number">difference</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              <td>
                <span class="swatch" style={{ background: classColor(theme, row.key) }} /> {row.words}
              </td>
              <td class="number">{size(row.before)}</td>
              <td class="number">{size(row.after)}</td>
              <td class="number" title={`${grouped(row.after - row.before)} B`}>
                {row.after === row.before ? '=' : signed(row.after - row.before)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <div ref={holder} class="canvas-holder">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label={`Flame graph of the difference: ${signed(change(0))} in all. Enter zooms to the widest, Backspace goes back.`}
          style={canvasStyle(width, height)}
          onMouseMove={(event) => {
            const box = boxUnder(event);
            setHover(box && { box, x: event.clientX, y: event.clientY });
          }}
          onMouseLeave={() => setHover(undefined)}
          onClick={(event) => {
            const box = boxUnder(event);
            if (box !== undefined) update({ zoom: pathTo(tree, box.node < 0 ? box.parent : box.node) });
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter') update({ zoom: pathTo(tree, Math.min(zoom + 1, tree.length - 1)) });
            else if (event.key === 'Backspace') update({ zoom: state.zoom.slice(0, -1) });
            else return;
            event.preventDefault();
          }}
        />
      </div>
      {hover !== undefined && (
        <Tooltip x={hover.x} y={hover.y}>
          <ChangeFacts tree={tree} box={hover.box} names={[base.name, profile.name]} />
        </Tooltip>
      )}
    </div>
  );
}

function ChangeFacts({ tree, box, names }: { tree: DiffTree; box: Box; names: [string, string] }) {
  if (box.node < 0) return <strong>{grouped(box.merged)} smaller boxes: zoom in to see them</strong>;
  const [before, after] = [tree.before[box.node], tree.after[box.node]];
  return (
    <>
      <strong class="wrap">{tree.label[box.node]}</strong>
      {tree.detail[box.node] !== '' && <div class="faint wrap">{tree.detail[box.node]}</div>}
      <table class="facts">
        <tbody>
          {[
            [names[0], before],
            [names[1], after],
          ].map(([name, bytes], i) => (
            <tr key={`${i}`}>
              <td class="wrap">{name}</td>
              <td class="number">{size(bytes as number)}</td>
              <td class="number faint">{grouped(bytes as number)} B</td>
            </tr>
          ))}
          <tr class="sum">
            <td>difference</td>
            <td class="number">{after === before ? '=' : signed(after - before)}</td>
            <td class="number faint">{grouped(after - before)} B</td>
          </tr>
        </tbody>
      </table>
    </>
  );
}
