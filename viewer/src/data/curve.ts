// Reading a device's curve.
import type { Curve, Tick } from './profile.ts';

export type Axis = 'events' | 'time';

// The last bucket that begins at or before `tick`.
export function bucketAt(curve: Curve, tick: Tick): number {
  return upperBound(curve.tick, tick) - 1;
}

function upperBound(values: Uint32Array | Float64Array, value: number): number {
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
  from: number; // index of a bucket
  to: number; // one past the last
}

// Neighbouring buckets of one step, or of one phase.
export function bandsOf(curve: Curve, of: 'step' | 'phase'): Band[] {
  const values = curve[of];
  const bands: Band[] = [];
  for (let bucket = 0; bucket < curve.length; ++bucket) {
    const last = bands[bands.length - 1];
    if (last !== undefined && last.value === values[bucket]) last.to = bucket + 1;
    else bands.push({ value: values[bucket], from: bucket, to: bucket + 1 });
  }
  return bands;
}
