// Reading a device's curve.
import type { Curve, Tick } from './profile.ts';

export type Axis = 'events' | 'time';

// The last bucket that begins at or before `tick`.
export function bucketAt(curve: Curve, tick: Tick): number {
  return upperBound(curve.tick, tick) - 1;
}

// When an event was, in ns: within a bucket of several events it lies between the bucket's begin and the next one's.
export function timeAt(curve: Curve, tick: Tick): number {
  const bucket = Math.max(0, bucketAt(curve, tick));
  if (bucket >= curve.length) return 0;
  const begin = curve.time[bucket];
  if (bucket + 1 >= curve.length || tick <= curve.tick[bucket]) return begin;
  const part = (tick - curve.tick[bucket]) / (curve.tick[bucket + 1] - curve.tick[bucket]);
  return begin + Math.floor(part * (curve.time[bucket + 1] - begin));
}

// The event `by` buckets after (or before) the one that holds `tick`: of each bucket its own peak, since between two
// there is nothing to see. undefined: `tick` is not in the curve, or there is no such bucket and the nearest end is
// reached already.
export function eventBeside(curve: Curve, tick: Tick, by: number): Tick | undefined {
  const bucket = bucketAt(curve, tick);
  if (bucket < 0) return undefined;
  const next = Math.min(curve.length - 1, Math.max(0, bucket + by));
  return next === bucket ? undefined : curve.highest_tick[next];
}

// How many values are at most `value`.
export function upperBound(values: Uint32Array | Float64Array, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Where buckets stand on the x axis: by their place among the events, or by time.
export function positions(curve: Curve, axis: Axis): Uint32Array | Float64Array {
  return axis === 'events' ? curve.tick : curve.time;
}

export interface Window {
  from: number; // in units of the axis
  to: number;
}

export function wholeWindow(curve: Curve, axis: Axis, ticks: number): Window {
  const values = positions(curve, axis);
  const from = curve.length > 0 ? values[0] : 0;
  const last = curve.length > 0 ? values[curve.length - 1] : 1;
  return { from, to: axis === 'events' ? Math.max(ticks, from + 1) : last > from ? last : from + 1 };
}

// For each of `columns` equal parts of the window, the bucket with most allocated bytes among those that begin in
// it; where none begins, the one that lasts through it. So the peak is drawn at every zoom.
export function bucketsByColumn(curve: Curve, axis: Axis, window: Window, columns: number): Int32Array {
  const chosen = new Int32Array(columns).fill(-1);
  const values = positions(curve, axis);
  const scale = columns / (window.to - window.from);
  let bucket = Math.max(0, upperBound(values, window.from) - 1);
  let carried = curve.length > 0 ? bucket : -1;
  if (curve.length > 0 && values[bucket] > window.from) carried = -1;
  for (let column = 0; column < columns; ++column) {
    let best = -1;
    while (bucket < curve.length && (values[bucket] - window.from) * scale < column + 1) {
      if (values[bucket] >= window.from && (best < 0 || curve.highest[bucket] > curve.highest[best]))
        best = bucket;
      carried = bucket;
      ++bucket;
    }
    chosen[column] = best >= 0 ? best : carried;
  }
  return chosen;
}

export interface Band {
  value: number; // a step's number or a phase's index
  from: number; // on the axis
  to: number;
}

// Stretches of one step, or of one phase, in a window divided into `cells`: each cell has the value that fills
// most of it, so that a program that goes to and fro faster than pixels is drawn as what it mostly does.
export function bandsOf(
  curve: Curve,
  of: 'step' | 'phase',
  axis: Axis,
  window: Window,
  cells: number,
): Band[] {
  const at = positions(curve, axis);
  const values = curve[of];
  const cell = (window.to - window.from) / cells;
  const bands: Band[] = [];
  let bucket = Math.max(0, upperBound(at, window.from) - 1);
  for (let i = 0; i < cells && bucket < curve.length; ++i) {
    const from = window.from + i * cell;
    const to = from + cell;
    const filled = new Map<number, number>();
    for (;;) {
      const end = bucket + 1 < curve.length ? at[bucket + 1] : Number.POSITIVE_INFINITY;
      const part = Math.min(end, to) - Math.max(at[bucket], from);
      if (part > 0) filled.set(values[bucket], (filled.get(values[bucket]) ?? 0) + part);
      if (end >= to) break;
      ++bucket;
    }
    let best: number | undefined;
    for (const [value, part] of filled)
      if (best === undefined || part > (filled.get(best) ?? 0)) best = value;
    if (best === undefined) continue;
    const last = bands[bands.length - 1];
    if (last !== undefined && last.value === best && Math.abs(last.to - from) < cell / 2) last.to = to;
    else bands.push({ value: best, from, to });
  }
  return bands;
}
