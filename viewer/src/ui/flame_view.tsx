import { useMemo } from 'preact/hooks';
import { grouped, share, size } from '../data/format.ts';
import type { BlockIndex, KindIndex } from '../data/profile.ts';
import { buildTree, foldedStacks, type Tree } from '../data/tree.ts';
import type { Box } from '../draw/flame.ts';
import { BlockFacts, Stack } from './block_facts.tsx';
import { FlameGraph } from './flame_graph.tsx';
import type { Model } from './model.ts';
import { Swatch } from './timeline_view.tsx';

// The selection by stack, module path or class.
export function FlameView({ model }: { model: Model }) {
  const { profile, state } = model;
  const { groups } = model.selected;
  const tree = useMemo(
    () => buildTree(profile, groups, state.by, state.inverted, state.frames),
    [profile, groups, state.by, state.inverted, state.frames],
  );
  return (
    <div class="flame">
      <FlameGraph
        model={model}
        tree={tree}
        name="vramtrace-flame"
        title="flame graph"
        summary={`Flame graph of ${size(tree.bytes[0])}.`}
        label={(node) =>
          node === 0 ? `${size(tree.bytes[0])} in ${grouped(tree.blocks[0])} blocks` : tree.label[node]
        }
        folded={() => foldedStacks(tree)}
        facts={(box) => <BoxFacts model={model} tree={tree} box={box} />}
        onZoom={(node) =>
          tree.end[node] === node + 1 && node > 0 ? { block: firstOfKind(model, tree.largest[node]) } : {}
        }
      />
      {groups.blocks === 0 && (
        <p class="empty">Nothing of what is selected: no block, or every class is hidden.</p>
      )}
    </div>
  );
}

// Any block of the selection that is of this kind.
function firstOfKind(model: Model, kind: KindIndex): BlockIndex {
  return model.selected.rows.find((row) => model.profile.blocks.kind[row] === kind) ?? -1;
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
  const one = node > 0 && (tree.end[node] === node + 1 || tree.blocks[node] === 1);
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
      {one && (
        <>
          <BlockFacts model={model} block={-1} kind={tree.largest[node]} short />
          <Stack model={model} kind={tree.largest[node]} most={8} />
        </>
      )}
    </>
  );
}
