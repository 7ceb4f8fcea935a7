import { useMemo } from 'preact/hooks';
import { buildDiff, classDifferences, type DiffTree, foldedDifference } from '../data/diff.ts';
import { grouped, signed, size } from '../data/format.ts';
import { type Groups, selectBlocks, totalsOf } from '../data/live.ts';
import type { Profile } from '../data/profile.ts';
import type { NodeIndex } from '../data/tree.ts';
import type { Box } from '../draw/flame.ts';
import { changeColor, classColor } from '../draw/theme.ts';
import { FlameGraph } from './flame_graph.tsx';
import { explainedOf, type Model } from './model.ts';

// This trace's selection against another trace at the instant that its report explains.
export function DiffView({ model, base }: { model: Model; base: Profile }) {
  const { profile, state, theme } = model;
  const before = useMemo(() => {
    const device = base.devices.includes(model.device) ? model.device : (base.devices[0] ?? 0);
    const { tick } = explainedOf(base, device);
    return selectBlocks(base, { device, mode: 'alive', from: tick, to: tick }, model.hidden).groups;
  }, [base, model.device, model.hidden]);
  const after = model.selected.groups;
  const tree = useMemo(
    () => buildDiff(base, before, profile, after, state.by, state.inverted, state.frames),
    [base, before, profile, after, state.by, state.inverted, state.frames],
  );
  const change = (node: NodeIndex) => tree.after[node] - tree.before[node];
  return (
    <div class="flame diff">
      <FlameGraph
        model={model}
        tree={tree}
        name="vramtrace-difference"
        title="difference"
        summary={`Flame graph of the difference: ${signed(change(0))} in all.`}
        label={(node) => (node === 0 ? `${signed(change(0))} in all` : tree.label[node])}
        fill={(node) => changeColor(theme, tree.bytes[node] === 0 ? 0 : change(node) / tree.bytes[node])}
        amount={(node) => (change(node) === 0 ? '=' : signed(change(node)))}
        folded={() => foldedDifference(tree)}
        facts={(box) => <ChangeFacts tree={tree} box={box} names={[base.name, profile.name]} />}
        legend={
          <>
            <span>
              <span class="swatch" style={{ background: changeColor(theme, 1) }} /> more than in{' '}
              <strong>{base.name}</strong>
            </span>
            <span>
              <span class="swatch" style={{ background: changeColor(theme, -1) }} /> less
            </span>
          </>
        }
      >
        <ClassTable model={model} base={base} before={before} />
      </FlameGraph>
    </div>
  );
}

function ClassTable({ model, base, before }: { model: Model; base: Profile; before: Groups }) {
  const { profile, theme } = model;
  const after = model.selected.groups;
  const rows = useMemo(
    () => classDifferences(profile, totalsOf(base, before).byClass, totalsOf(profile, after).byClass),
    [base, before, profile, after],
  );
  return (
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
