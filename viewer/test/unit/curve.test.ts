import { describe, expect, it } from 'vitest';
import { bandsOf, bucketAt, bucketsByColumn } from '../../src/data/curve.ts';
import { curveFromValues } from './fixture.ts';

describe('the curve in columns', () => {
  it('keeps the peak at every width', () => {
    const values = Array.from({ length: 10_000 }, (_, i) => (i === 7_777 ? 1e9 : i % 100));
    const curve = curveFromValues(values);
    for (const columns of [1, 7, 100, 1_234, 9_999, 20_000]) {
      const chosen = bucketsByColumn(curve, 'events', { from: 0, to: 10_000 }, columns);
      expect([...chosen].some((bucket) => bucket === 7_777)).toBe(true);
      expect(chosen).toHaveLength(columns);
    }
  });
  it('carries a bucket on through columns in which none begins', () => {
    const curve = curveFromValues([5, 9]);
    expect([...bucketsByColumn(curve, 'events', { from: 0, to: 2 }, 6)]).toEqual([0, 0, 0, 1, 1, 1]);
  });
  it('knows what holds where a window begins between two events', () => {
    const curve = curveFromValues([5, 9, 7]);
    curve.time.set([0, 1000, 9000]);
    expect([...bucketsByColumn(curve, 'time', { from: 2000, to: 10_000 }, 4)]).toEqual([1, 1, 1, 2]);
  });
  it('draws nothing before the first event', () => {
    const curve = curveFromValues([5]);
    curve.tick.set([50]);
    expect([...bucketsByColumn(curve, 'events', { from: 0, to: 100 }, 4)]).toEqual([-1, -1, 0, 0]);
  });
  it('finds the bucket of a tick', () => {
    const curve = curveFromValues([1, 2, 3]);
    expect([bucketAt(curve, 0), bucketAt(curve, 2), bucketAt(curve, 99)]).toEqual([0, 2, 2]);
  });
});

describe('bands', () => {
  it('joins neighbours of one step', () => {
    const curve = curveFromValues([1, 1, 1, 1], [0, 0, 1, 1]);
    expect(bandsOf(curve, 'step', 'events', { from: 0, to: 4 }, 4)).toEqual([
      { value: 0, from: 0, to: 2 },
      { value: 1, from: 2, to: 4 },
    ]);
  });
  it('shows what fills most of a cell', () => {
    const curve = curveFromValues([1, 1, 1, 1, 1, 1], [0, 1, 0, 0, 1, 0]);
    expect(bandsOf(curve, 'step', 'events', { from: 0, to: 6 }, 2)).toEqual([{ value: 0, from: 0, to: 6 }]);
  });
});
