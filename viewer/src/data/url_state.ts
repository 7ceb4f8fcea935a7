// Every setting of the view, as it stands in the URL's hash. Defaults are left out; what is not understood is
// left at its default.

import type { Axis } from './curve.ts';
import type { Mode } from './live.ts';
import type { Tick } from './profile.ts';
import type { Frames, Grouping } from './tree.ts';

export type View = 'flame' | 'blocks' | 'modules' | 'map' | 'ranks' | 'diff' | 'whatif';
export type TableKind = 'allocations' | 'tensors';
export type Theme = 'system' | 'light' | 'dark';

export interface State {
  trace: number; // of those in the page
  device: number;
  tick: Tick; // -1: the instant that the report explains
  mode: Mode;
  from: Tick; // of the range; used unless mode is `alive`
  view: View;
  by: Grouping;
  frames: Frames;
  inverted: boolean;
  flipped: boolean; // flames grow upwards
  zoom: string[]; // path in the flame graph
  search: string;
  hidden: string[]; // keys of classes
  axis: Axis;
  window: [number, number] | undefined; // of the timeline, in ticks
  table: TableKind;
  sort: string; // "-bytes"
  opened: string[]; // modules, each path with a dot before it; "*": down to where the memory divides
  block: number; // selected; -1: none
  batch: number; // of the what-if panel; 0: the recorded one
  technique: string; // likewise; joined by " + "
  card: string; // likewise; empty: the one of the recording
  theme: Theme;
}

export const kDefaults: State = {
  trace: 0,
  device: -1,
  tick: -1,
  mode: 'alive',
  from: -1,
  view: 'flame',
  by: 'stack',
  frames: 'program',
  inverted: false,
  flipped: false,
  zoom: [],
  search: '',
  hidden: [],
  axis: 'events',
  window: undefined,
  table: 'allocations',
  sort: '-bytes',
  opened: ['*'],
  block: -1,
  batch: 0,
  technique: '',
  card: '',
  theme: 'system',
};

const kVersion = 1;
const kKeys: [keyof State, string][] = [
  ['trace', 'r'],
  ['device', 'd'],
  ['tick', 't'],
  ['mode', 'm'],
  ['from', 'f'],
  ['view', 'view'],
  ['by', 'by'],
  ['frames', 'fr'],
  ['inverted', 'inv'],
  ['flipped', 'up'],
  ['zoom', 'z'],
  ['search', 'q'],
  ['hidden', 'hide'],
  ['axis', 'x'],
  ['window', 'w'],
  ['table', 'table'],
  ['sort', 'sort'],
  ['opened', 'open'],
  ['block', 'b'],
  ['batch', 'batch'],
  ['technique', 'with'],
  ['card', 'gpu'],
  ['theme', 'theme'],
];
const kChoices: Partial<Record<keyof State, readonly string[]>> = {
  mode: ['alive', 'allocated', 'kept', 'freed'],
  view: ['flame', 'blocks', 'modules', 'map', 'ranks', 'diff', 'whatif'],
  table: ['allocations', 'tensors'],
  by: ['stack', 'module', 'class'],
  axis: ['events', 'time'],
  frames: ['program', 'all'],
  theme: ['system', 'light', 'dark'],
};

export function formatHash(state: State): string {
  const parts = [`v=${kVersion}`];
  for (const [key, short] of kKeys) {
    const text = JSON.stringify(state[key]);
    if (text === undefined || text === JSON.stringify(kDefaults[key])) continue;
    const value = state[key];
    const written =
      typeof value === 'string'
        ? value
        : Array.isArray(value)
          ? value.map((part) => encodeURIComponent(String(part))).join('/')
          : text;
    parts.push(`${short}=${encodeURIComponent(written)}`);
  }
  return `#${parts.join('&')}`;
}

export function parseHash(hash: string): State {
  const state: State = { ...kDefaults };
  const entries = new Map(
    hash
      .replace(/^#/, '')
      .split('&')
      .map((part): [string, string] => {
        const at = part.indexOf('=');
        return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
      }),
  );
  for (const [key, short] of kKeys) {
    const raw = entries.get(short);
    if (raw === undefined) continue;
    const value = parseValue(key, raw);
    if (value === undefined) console.error(`vramtrace: ${short}=${raw} in the address is not understood`);
    else (state as unknown as Record<string, unknown>)[key] = value;
  }
  return state;
}

function parseValue(key: keyof State, raw: string): unknown {
  let text: string;
  let parts: string[];
  try {
    text = decodeURIComponent(raw);
    parts = text === '' ? [] : text.split('/').map(decodeURIComponent);
  } catch {
    return undefined;
  }
  const standard = kDefaults[key];
  if (key === 'window') {
    const [from, to] = parts.map(Number);
    return parts.length === 2 && from < to ? [from, to] : undefined;
  }
  if (Array.isArray(standard)) return parts;
  if (typeof standard === 'number')
    return text !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined;
  if (typeof standard === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined;
  const choices = kChoices[key];
  return choices === undefined || choices.includes(text) ? text : undefined;
}
