import { describe, expect, it } from 'vitest';
import { eventBeside, timeAt } from '../../src/data/curve.ts';
import { finerCurve, stretchToRefine } from '../../src/data/finer.ts';
import { selectBlocks, totalsOf } from '../../src/data/live.ts';
import { curveFromValues, profileFromText } from './fixture.ts';

const kRun = `
  weight      1000  0-      fc.weight  main
  activation  2000  5-20    [fc]       main > forward
  temporary   300   10-12   -          main > forward
  temporary   700   12-13   -          main > forward
  gradient    1000  15-     fc.weight  main
  activation  100   30-40   [fc]       main > forward
`;

function run() {
  const profile = profileFromText(kRun);
  profile.kinds.phase.set([0, 1, 1, 1, 2, 1]);
  profile.steps = { length: 2, tick: Uint32Array.of(0, 25), number: Uint32Array.of(0, 1) };
  profile.segments = {
    length: 3,
    device: Uint8Array.of(0, 0, 1),
    caching: Uint8Array.of(1, 1, 1),
    address: new Float64Array(3),
    bytes: Float64Array.of(4096, 8192, 1e6),
    allocated: Uint32Array.of(0, 5, 0),
    freed: Uint32Array.of(0xffffffff, 21, 0xffffffff),
    caller: new Uint32Array(3),
  };
  // Ten events a bucket.
  const whole = curveFromValues(Array.from({ length: 10 }, () => 0));
  whole.tick = whole.tick.map((i) => 10 * i);
  whole.reserved.fill(12_288);
  return { profile, whole };
}

describe('the curve of a stretch', () => {
  it('is the live set at every event, class by class', () => {
    const { profile, whole } = run();
    for (const [from, to] of [
      [0, 99],
      [8, 33],
      [12, 12],
    ] as const) {
      const curve = finerCurve(profile, profile.blocks, 0, whole, from, to);
      expect(curve.length).toBe(to - from + 1);
      for (let tick = from; tick <= to; ++tick) {
        const { groups } = selectBlocks(profile, { device: 0, mode: 'alive', from: 0, to: tick }, new Set());
        const totals = totalsOf(profile, groups);
        expect(curve.tick[tick - from]).toBe(tick);
        expect(curve.highest[tick - from]).toBe(totals.blockBytes);
        const bands = [...totals.byClass.keys()].map((band) => curve.bands.get(band)?.[tick - from] ?? 0);
        expect(bands).toEqual([...totals.byClass]);
      }
    }
  });
  it('knows steps, phases, times and what is reserved', () => {
    const { profile, whole } = run();
    const curve = finerCurve(profile, profile.blocks, 0, whole, 0, 49);
    const at = (tick: number) => [curve.step[tick], curve.phase[tick], curve.reserved[tick]];
    expect(at(0)).toEqual([0, 0, 4096]);
    expect(at(5)).toEqual([0, 1, 12_288]);
    expect(at(15)).toEqual([0, 2, 12_288]);
    expect(at(21)).toEqual([0, 2, 4096]);
    expect(at(30)).toEqual([1, 1, 4096]);
    expect(curve.time[15]).toBe(1500);
    expect(curve.used[15]).toBe(-1);
  });
  it('keeps the highest and the lowest of each bucket where there are more events than pixels', () => {
    const { profile, whole } = run();
    profile.ticks = 100_000;
    profile.blocks.allocated[3] = 70_001;
    profile.blocks.freed[3] = 70_002;
    const curve = finerCurve(profile, profile.blocks, 0, whole, 0, 99_999);
    expect(curve.length).toBeLessThan(10_000);
    const bucket = curve.tick.findIndex((tick) => tick > 70_001) - 1;
    expect(curve.highest_tick[bucket]).toBe(70_001);
    expect(curve.highest[bucket] - curve.lowest[bucket]).toBe(1024);
  });
  it('is asked for only where it shows more', () => {
    const long = curveFromValues(Array.from({ length: 20_000 }, () => 1));
    long.tick = long.tick.map((i) => 100 * i);
    const ticks = 2_000_000;
    expect(stretchToRefine(long, 0, ticks, ticks)).toBeUndefined();
    expect(stretchToRefine(long, 1_234, 5_678, ticks)).toEqual([1_200, 5_699]);
    expect(stretchToRefine(long, ticks - 50, ticks, ticks)).toEqual([ticks - 100, ticks - 1]);
    const short = curveFromValues([1, 2, 3]);
    expect(stretchToRefine(short, 0, 2, 3)).toBeUndefined();
    // Longer than a server should send: 2,000 buckets of a thousand events.
    long.tick = long.tick.map((_, i) => 1000 * i);
    expect(stretchToRefine(long, 0, 1_990_000, 20_000_000)).toBeUndefined();
    expect(stretchToRefine(long, 0, 900_000, 20_000_000)).toEqual([0, 900_999]);
  });
});

describe('going along a curve', () => {
  const curve = curveFromValues([5, 9, 7]);
  curve.tick = Uint32Array.of(0, 10, 20);
  curve.highest_tick = Uint32Array.of(3, 14, 20);
  it('steps from bucket to bucket, to the highest event of each', () => {
    expect(eventBeside(curve, 4, 1)).toBe(14);
    expect(eventBeside(curve, 25, -1)).toBe(14);
    expect(eventBeside(curve, 4, 100)).toBe(20);
    expect(eventBeside(curve, 25, 1)).toBeUndefined();
    expect(eventBeside(curveFromValues([]), 4, 1)).toBeUndefined();
  });
  it('places events of a bucket between its begin and the next', () => {
    expect([0, 5, 10, 15, 20, 99].map((tick) => timeAt(curve, tick))).toEqual([
      0, 500, 1000, 1500, 2000, 2000,
    ]);
  });
});
