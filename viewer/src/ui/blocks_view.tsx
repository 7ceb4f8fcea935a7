// The table of allocations. Only the rows in view exist as elements.
import { useMemo, useRef, useState } from 'preact/hooks';
import { grouped, size } from '../data/format.ts';
import { type BlockIndex, blockName, type Profile } from '../data/profile.ts';
import { matchesText, wordsOf } from '../data/search.ts';
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

export const kColumns: TableColumn[] = [
  {
    key: 'bytes',
    words: 'size',
    number: true,
    text: (p, b) => size(p.blocks.bytes[b]),
    order: (p, b) => p.blocks.bytes[b],
  },
  { key: 'class', words: 'class', text: (p, b) => p.classes[p.blocks.class[b]].words },
  { key: 'name', words: 'name', text: blockName },
  {
    key: 'shape',
    words: 'tensor',
    text: (p, b) => `${p.strings[p.blocks.shape[b]]} ${p.strings[p.blocks.dtype[b]]}`.trim(),
  },
  {
    key: 'module',
    words: 'module',
    text: (p, b) =>
      p.blocks.module_class[b] === 0
        ? ''
        : `${p.strings[p.blocks.module[b]] || 'root'} (${p.strings[p.blocks.module_class[b]]})`,
  },
  { key: 'phase', words: 'made in', text: (p, b) => p.phases[p.blocks.phase[b]] },
  {
    key: 'step',
    words: 'step',
    number: true,
    text: (p, b) => String(p.blocks.step[b]),
    order: (p, b) => p.blocks.step[b],
  },
  {
    key: 'age',
    words: 'event',
    number: true,
    text: (p, b) => grouped(p.blocks.allocated[b]),
    order: (p, b) => p.blocks.allocated[b],
  },
];

export function sortRows(profile: Profile, rows: Uint32Array, sort: string): Uint32Array {
  const falling = sort.startsWith('-');
  const column = kColumns.find((known) => known.key === sort.replace('-', '')) ?? kColumns[0];
  if (column.key === 'bytes' && falling) return rows;
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

export function filterRows(profile: Profile, rows: Uint32Array, query: string): Uint32Array {
  const words = wordsOf(query);
  if (words.length === 0) return rows;
  return rows.filter((block) =>
    matchesText(words, kColumns.map((column) => column.text(profile, block)).join(' ')),
  );
}

function csvOf(profile: Profile, rows: Uint32Array): string {
  const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const lines = [...rows].map((block) =>
    [
      profile.blocks.bytes[block],
      ...kColumns.slice(1).map((column) => cell(column.text(profile, block))),
    ].join(','),
  );
  return [['bytes', ...kColumns.slice(1).map((column) => column.words)].join(','), ...lines].join('\n');
}

export function BlocksView({ model }: { model: Model }) {
  const { profile, state, update } = model;
  const [top, setTop] = useState(0);
  const holder = useRef<HTMLDivElement>(null);
  const filtered = useMemo(
    () => filterRows(profile, model.rows, state.search),
    [profile, model.rows, state.search],
  );
  const rows = useMemo(() => sortRows(profile, filtered, state.sort), [profile, filtered, state.sort]);
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
        <span role="status">
          {grouped(rows.length)} of {grouped(model.rows.length)} blocks
        </span>
        <span class="grow" />
        <button
          type="button"
          onClick={() =>
            saveFile(new Blob([csvOf(profile, rows)], { type: 'text/csv' }), 'vramtrace-blocks.csv')
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
          {kColumns.map((column) => (
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
            {kColumns.map((column) => (
              <span
                key={column.key}
                role="gridcell"
                class={`cell ${column.key} ${column.number ? 'number' : ''}`}
                title={column.text(profile, block)}
              >
                {column.key === 'class' && <Swatch model={model} band={profile.blocks.class[block]} />}{' '}
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
