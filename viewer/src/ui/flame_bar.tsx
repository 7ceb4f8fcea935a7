import type { ComponentChildren } from 'preact';
import type { Grouping } from '../data/tree.ts';
import type { Model } from './model.ts';

const kGroupings: [Grouping, string][] = [
  ['stack', 'by stack'],
  ['module', 'by module'],
  ['class', 'by class'],
];

// How a tree is made of blocks, and where in it the reader is; at its end what the graph adds.
export function FlameBar(props: { model: Model; legend?: ComponentChildren; children: ComponentChildren }) {
  const { state, update } = props.model;
  return (
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
      {props.legend}
      <Breadcrumbs model={props.model} />
      <span class="grow" />
      {props.children}
    </div>
  );
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
