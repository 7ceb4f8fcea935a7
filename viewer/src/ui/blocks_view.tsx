// The table of allocations. Only the rows in view exist as elements.
import { useMemo, useRef, useState } from 'preact/hooks';
import { grouped, size } from '../data/format.ts';
import { bySize } from '../data/live.ts';
import { type BlockIndex, blockBytes, blockName, type Profile, stepAt } from '../data/profile.ts';
import { matchesText, wordsOf } from '../data/search.ts';
import type { TableKind } from '../data/url_state.ts';
import { saveFile } from './canvas.tsx';
import type { Model } from './model.ts';
import { Swatch } from './timeline_view.tsx';

const kRow = 26;
const kOverscan = 8;

interface TableColumn {
  key: string;
  words: string;
  number?: boolean;
  text: (profile: Profile, block: BlockIndex) => string;
  order?: (profile: Profile, block: BlockIndex) => number;
}

const kindOf = (p: Profile, b: BlockIndex) => p.blocks.kind[b];
const kSize: TableColumn = {
  key: 'bytes',
  words: 'size',
  number: true,
  text: (p, b) => size(blockBytes(p, b)),
  order: blockBytes,
};
const kClass: TableColumn = {
  key: 'class',
  words: 'class',
  text: (p, b) => p.classes[p.kinds.class[kindOf(p, b)]].words,
};
const kName: TableColumn = { key: 'name', words: 'name', text: blockName };
const kModule: TableColumn = {
  key: 'module',
  words: 'module',
  text: (p, b) => {
    const kind = kindOf(p, b);
    if (p.kinds.module_class[kind] === 0) return '';
    return `${p.strings[p.kinds.module[kind]] || 'root'} (${p.strings[p.kinds.module_class[kind]]})`;
  },
};
const kStep: TableColumn = {
  key: 'step',
  words: 'step',
  number: true,
  text: (p, b) => String(stepAt(p, p.blocks.allocated[b])),
  order: (p, b) => p.blocks.allocated[b],
};

export const kColumns: Record<TableKind, TableColumn[]> = {
  allocations: [
    kSize,
    kClass,
    kName,
    {
      key: 'shape',
      words: 'tensor',
      text: (p, b) =>
        `${p.strings[p.kinds.shape[kindOf(p, b)]]} ${p.strings[p.kinds.dtype[kindOf(p, b)]]}`.trim(),
    },
    kModule,
    { key: 'phase', words: 'made in', text: (p, b) => p.phases[p.kinds.phase[kindOf(p, b)]] },
    kStep,
    {
      key: 'age',
      words: 'event',
      number: true,
      text: (p, b) => grouped(p.blocks.allocated[b]),
      order: (p, b) => p.blocks.allocated[b],
    },
  ],
  // What the program's own objects named: parameters, gradients, optimizer states, buffers, inputs.
  tensors: [
    kSize,
    kClass,
    { ...kName, words: 'tensor' },
    { key: 'shape', words: 'shape', text: (p, b) => p.strings[p.kinds.shape[kindOf(p, b)]] },
    kModule,
    { key: 'dtype', words: 'type', text: (p, b) => p.strings[p.kinds.dtype[kindOf(p, b)]] },
    kStep,
    {
      key: 'rounding',
      words: 'block',
      number: true,
      text: (p, b) => size(p.kinds.block_bytes[kindOf(p, b)]),
      order: (p, b) => p.kinds.block_bytes[kindOf(p, b)],
    },
  ],
};

export const isTensor = (profile: Profile, block: BlockIndex) =>
  profile.kinds.dtype[kindOf(profile, block)] !== 0;

export function sortRows(
  profile: Profile,
  rows: Uint32Array,
  sort: string,
  columns: readonly TableColumn[] = kColumns.allocations,
): Uint32Array {
  const falling = sort.startsWith('-');
  const column = columns.find((known) => known.key === sort.replace('-', '')) ?? columns[0];
  if (column.key === 'bytes' && falling) return bySize(profile, rows);
  const sign = falling ? -1 : 1;
  const sorted = [...rows];
  const { order } = column;
  if (order !== undefined) sorted.sort((a, b) => sign * (order(profile, a) - order(profile, b)) || a - b);
  else {
    const keys = new Map(sorted.map((block) => [block, column.text(profile, block)]));
    const compare = new Intl.Collator('en', { numeric: true }).compare;
    sorted.sort((a, b) => sign * compare(keys.get(a) as string, keys.get(b) as string) || a - b);
  }
  return Uint32Array.from(sorted);
}

// Texts are those of kinds, of which there are few; only the step and the event differ between their blocks.
export function filterRows(
  profile: Profile,
  rows: Uint32Array,
  query: string,
  columns: readonly TableColumn[] = kColumns.allocations,
): Uint32Array {
  const words = wordsOf(query);
  if (words.length === 0) return rows;
  const known = new Map<number, boolean>();
  return rows.filter((block) => {
    const kind = kindOf(profile, block);
    let matches = known.get(kind);
    if (matches === undefined) {
      const texts = columns.filter((column) => !kPerBlock.has(column.key));
      matches = matchesText(words, texts.map((column) => column.text(profile, block)).join(' '));
      known.set(kind, matches);
    }
    return matches;
  });
}

const kPerBlock = new Set(['step', 'age']);

function csvOf(profile: Profile, rows: Uint32Array, columns: readonly TableColumn[]): string {
  const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const lines = [...rows].map((block) =>
    [blockBytes(profile, block), ...columns.slice(1).map((column) => cell(column.text(profile, block)))].join(
      ',',
    ),
  );
  return [['bytes', ...columns.slice(1).map((column) => column.words)].join(','), ...lines].join('\n');
}

export function BlocksView({ model }: { model: Model }) {
  const { profile, state, update } = model;
  const [top, setTop] = useState(0);
  const holder = useRef<HTMLDivElement>(null);
  const columns = kColumns[state.table];
  const all = useMemo(
    () =>
      state.table === 'tensors'
        ? model.selected.rows.filter((block) => isTensor(profile, block))
        : model.selected.rows,
    [profile, model.selected, state.table],
  );
  const filtered = useMemo(
    () => filterRows(profile, all, state.search, columns),
    [profile, all, state.search, columns],
  );
  const rows = useMemo(
    () => sortRows(profile, filtered, state.sort, columns),
    [profile, filtered, state.sort, columns],
  );
  const bytes = useMemo(
    () => filtered.reduce((sum, block) => sum + blockBytes(profile, block), 0),
    [profile, filtered],
  );
  const height = holder.current?.clientHeight ?? 600;
  const first = Math.max(0, Math.floor(top / kRow) - kOverscan);
  const last = Math.min(rows.length, Math.ceil((top + height) / kRow) + kOverscan);
  const select = (block: BlockIndex) => update({ block }, 'replace');
  const onKeyDown = (event: KeyboardEvent) => {
    const delta = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (delta === 0 || rows.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.min(rows.length - 1, Math.max(0, rows.indexOf(state.block) + delta));
    select(rows[next]);
    const place = next * kRow;
    const element = holder.current;
    if (element === null) return;
    if (place < element.scrollTop) element.scrollTop = place;
    if (place + 2 * kRow > element.scrollTop + element.clientHeight)
      element.scrollTop = place + 2 * kRow - element.clientHeight;
  };
  const sortBy = (column: TableColumn) => {
    const falling =
      state.sort === `-${column.key}` || (column.number !== true && state.sort !== column.key) ? '' : '-';
    update({ sort: `${falling}${column.key}` }, 'replace');
  };
  return (
    <div class="blocks">
      <div class="bar">
        <span class="segmented" role="group" aria-label="Rows">
          {(['allocations', 'tensors'] as const).map((table) => (
            <button
              type="button"
              key={table}
              aria-pressed={state.table === table}
              onClick={() => update({ table, sort: '-bytes' })}
            >
              {table}
            </button>
          ))}
        </span>
        <span role="status">
          {grouped(rows.length)} of {grouped(all.length)} {state.table}, {size(bytes)}
        </span>
        <span class="grow" />
        <button
          type="button"
          onClick={() =>
            saveFile(
              new Blob([csvOf(profile, rows, columns)], { type: 'text/csv' }),
              `vramtrace-${state.table}.csv`,
            )
          }
        >
          save CSV
        </button>
      </div>
      <div
        ref={holder}
        class="scroller"
        tabIndex={0}
        role="grid"
        aria-label="Blocks"
        aria-rowcount={rows.length}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
      >
        <div class="row head" role="row">
          {columns.map((column) => (
            <div
              key={column.key}
              role="columnheader"
              class={`cell ${column.number ? 'number' : ''}`}
              aria-sort={
                state.sort === column.key
                  ? 'ascending'
                  : state.sort === `-${column.key}`
                    ? 'descending'
                    : 'none'
              }
            >
              <button type="button" onClick={() => sortBy(column)}>
                {column.words}
                {state.sort === column.key ? ' ▲' : state.sort === `-${column.key}` ? ' ▼' : ''}
              </button>
            </div>
          ))}
        </div>
        <div style={{ height: `${first * kRow}px` }} />
        {Array.from(rows.subarray(first, last), (block, i) => (
          <div
            class={`row ${block === state.block ? 'selected' : ''}`}
            role="row"
            aria-rowindex={first + i + 1}
            aria-selected={block === state.block}
            key={block}
            onClick={() => select(block)}
          >
            {columns.map((column) => (
              <span
                key={column.key}
                role="gridcell"
                class={`cell ${column.key} ${column.number ? 'number' : ''}`}
                title={column.text(profile, block)}
              >
                {column.key === 'class' && (
                  <Swatch model={model} band={profile.kinds.class[kindOf(profile, block)]} />
                )}{' '}
                {column.text(profile, block)}
              </span>
            ))}
          </div>
        ))}
        <div style={{ height: `${(rows.length - last) * kRow}px` }} />
      </div>
    </div>
  );
}
