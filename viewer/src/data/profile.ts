// A trace as tables of typed arrays. Index types say which table a number points into; -1 and 0 mean "none" as
// noted. Bytes are doubles, exact up to 2^53.
import type { Column, Container } from './container.ts';
import type { Forecast, Report } from './report.ts';

export type StringIndex = number; // 0: the empty text
export type BlockIndex = number;
export type StackIndex = number; // 0: the empty stack
export type FrameIndex = number; // 0: none
export type KindIndex = number;
export type ClassIndex = number; // of `classes`; the last is the allocator's rounding
export type Tick = number; // ordinal of an event that concerns a device
export type Bytes = number;

export const kNever: Tick = 0xffffffff;

// What blocks have in common: a training step allocates the same few thousand blocks again and again.
export interface KindTable {
  length: number;
  device: Uint8Array;
  class: Uint8Array;
  confidence: Uint8Array;
  phase: Uint8Array;
  stack: Uint32Array;
  forward_stack: Uint32Array; // of the forward that made the running node
  title: Uint32Array;
  names: Uint32Array;
  module: Uint32Array; // path
  module_class: Uint32Array; // 0: no module is known
  evidence: Uint32Array;
  rule: Uint32Array;
  operator: Uint32Array;
  dtype: Uint32Array;
  shape: Uint32Array;
  bytes: Float64Array; // of the tensor
  block_bytes: Float64Array; // with the allocator's rounding
}

// One row a block of the caching allocator, with its whole life; in the order of `allocated`.
export interface BlockTable {
  length: number;
  kind: Uint32Array;
  allocated: Uint32Array; // tick
  freed: Uint32Array; // tick; kNever: alive at the end
  address: Uint32Array; // in `addresses`
}

// Which step is under way from which tick on.
export interface StepTable {
  length: number;
  tick: Uint32Array;
  number: Uint32Array;
}

export interface StackTable {
  parent: Uint32Array; // always smaller than the stack's own number
  frame: Uint32Array;
}

export interface FrameTable {
  function: Uint32Array;
  place: Uint32Array;
  file: Uint32Array;
  plumbing: Uint8Array; // 1: native, or what torch wraps around every call
}

export interface SegmentTable {
  length: number;
  device: Uint8Array;
  caching: Uint8Array; // 0: taken by somebody else than the caching allocator
  address: Float64Array;
  bytes: Float64Array;
  allocated: Uint32Array;
  freed: Uint32Array;
  caller: Uint32Array;
}

// One bucket an event, or several events of which the one with most bytes allocated is kept.
export interface Curve {
  length: number;
  tick: Uint32Array; // of the bucket's first event
  time: Float64Array; // ns
  step: Uint32Array;
  phase: Uint8Array;
  highest_tick: Uint32Array;
  highest: Float64Array; // allocated
  lowest: Float64Array;
  reserved: Float64Array;
  used: Float64Array; // -1: not known
  bands: Map<ClassIndex, Float64Array>; // tensor bytes at highest_tick; together `highest`
}

export type MarkKind = 'peak' | 'peak_reserved' | 'peak_used' | 'out_of_memory';
export interface Mark {
  device: number;
  kind: MarkKind;
  tick: Tick;
}

export interface MemoryClass {
  key: string;
  words: string;
  meaning: string;
}

export interface Profile {
  report: Report;
  forecasts: Forecast[]; // of the what-if panel; the first is the run as it is
  wholeRun: string; // commands that forecast a run which died too early for that; empty: it did not
  strings: string[];
  classes: MemoryClass[];
  phases: string[];
  confidences: string[];
  complete: boolean; // every block is here; else those alive at `keyframes` and at any tick of `detail`
  keyframes: Tick[];
  detail: [Tick, Tick][]; // both inclusive
  ticks: number;
  devices: number[];
  marks: Mark[];
  damaged: boolean;
  name: string; // of the trace
  base: boolean; // the run that others are compared with
  served: boolean; // blocks that are not here may be asked for
  traceVersion: number;
  kinds: KindTable;
  blocks: BlockTable;
  addresses: Float64Array;
  steps: StepTable;
  stacks: StackTable;
  frames: FrameTable;
  segments: SegmentTable;
  curves: Map<number, Curve>;
}

interface Header {
  version: number;
  name: string;
  base: boolean;
  served: boolean;
  trace_version: number;
  report: Report;
  forecasts: Forecast[]; // of the what-if panel; the first is the run as it is
  whole_run: string;
  strings: string[];
  classes: MemoryClass[];
  phases: string[];
  confidences: string[];
  complete: boolean;
  keyframes: Tick[];
  detail: [Tick, Tick][];
  ticks: number;
  devices: number[];
  marks: Mark[];
  damaged: boolean;
}

// Every column whose name begins with `prefix`, by the rest of its name.
function table<T>(columns: Map<string, Column>, prefix: string): T {
  const found: Record<string, Column | number> = { length: 0 };
  for (const [name, column] of columns) {
    if (!name.startsWith(prefix)) continue;
    found[name.slice(prefix.length)] = column;
    found.length = column.length;
  }
  return found as T;
}

function curveOf(columns: Map<string, Column>, device: number): Curve {
  const prefix = `curve${device}.`;
  const curve = table<Curve>(columns, prefix);
  curve.bands = new Map();
  for (const [name, column] of columns) {
    if (name.startsWith(`${prefix}band`))
      curve.bands.set(Number(name.slice(prefix.length + 4)), column as Float64Array);
  }
  return curve;
}

// The end of a block is written as what it lived, 0 for ever; here it becomes a tick, in place.
export function blocksOf(container: Container): BlockTable {
  const found = table<BlockTable & { lifetime: Uint32Array }>(container.columns, 'block.');
  const { allocated, lifetime } = found;
  for (let i = 0; i < lifetime.length; ++i)
    lifetime[i] = lifetime[i] === 0 ? kNever : lifetime[i] + allocated[i];
  return {
    length: allocated.length,
    kind: found.kind,
    allocated,
    freed: lifetime,
    address: found.address,
  };
}

export function profileOf(container: Container): Profile {
  const header = container.header as unknown as Header;
  if (header.version !== 2) {
    throw new Error(`The page's data has version ${header.version}; this page reads version 2.`);
  }
  const { columns } = container;
  return {
    report: header.report,
    forecasts: header.forecasts ?? [],
    wholeRun: header.whole_run ?? '',
    strings: header.strings,
    classes: header.classes,
    phases: header.phases,
    confidences: header.confidences,
    complete: header.complete,
    keyframes: header.keyframes,
    detail: header.detail ?? [],
    ticks: header.ticks,
    devices: header.devices,
    marks: header.marks,
    damaged: header.damaged,
    name: header.name,
    base: header.base,
    served: header.served,
    traceVersion: header.trace_version,
    kinds: table<KindTable>(columns, 'kind.'),
    blocks: blocksOf(container),
    addresses: (columns.get('address.value') ?? new Float64Array()) as Float64Array,
    steps: table<StepTable>(columns, 'step.'),
    stacks: table<StackTable>(columns, 'stack.'),
    frames: table<FrameTable>(columns, 'frame.'),
    segments: table<SegmentTable>(columns, 'segment.'),
    curves: new Map(header.devices.map((device) => [device, curveOf(columns, device)])),
  };
}

export function roundingClass(profile: Profile): ClassIndex {
  return profile.classes.length - 1;
}

// What a block is called; never empty. The fall-backs are those of `analyze`.
export function kindName(profile: Profile, kind: KindIndex): string {
  const { kinds, strings, phases } = profile;
  let text = strings[kinds.title[kind]];
  if (kinds.names[kind] !== 0) return text;
  if (text === '' && kinds.module_class[kind] !== 0) text = strings[kinds.module_class[kind]];
  const operator = strings[kinds.operator[kind]];
  if (operator !== '') text = text === '' ? operator : `${text}, ${operator}`;
  return text === '' ? `made in ${phases[kinds.phase[kind]]}` : text;
}

export function blockName(profile: Profile, block: BlockIndex): string {
  return kindName(profile, profile.blocks.kind[block]);
}

export function blockBytes(profile: Profile, block: BlockIndex): Bytes {
  return profile.kinds.bytes[profile.blocks.kind[block]];
}

export function blockAddress(profile: Profile, block: BlockIndex): number {
  return profile.addresses[profile.blocks.address[block]];
}

// The step that was under way at a tick.
export function stepAt(profile: Profile, tick: Tick): number {
  const { steps } = profile;
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps.tick[middle] <= tick) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : steps.number[low - 1];
}
