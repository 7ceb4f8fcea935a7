import { describe, expect, it } from 'vitest';
import { bySize, nearestKeyframe, selectBlocks, totalsOf } from '../../src/data/live.ts';
import { profileFromText } from './fixture.ts';

const kRun = `
  weight      1000  0-      fc.weight  main
  activation  2000  5-20    [fc]       main > forward
  temporary   300   10-12   -          main > forward
  gradient    1000  15-     fc.weight  main
`;

function names(
  mode: 'alive' | 'allocated' | 'kept' | 'freed',
  from: number,
  to: number,
  hidden: number[] = [],
) {
  const profile = profileFromText(kRun);
  const { rows } = selectBlocks(profile, { device: 0, mode, from, to }, new Set(hidden));
  return [...bySize(profile, rows)].map(
    (row) => profile.classes[profile.kinds.class[profile.blocks.kind[row]]].key,
  );
}

describe('what a selection means', () => {
  it('is alive from its own event up to the one that frees it', () => {
    expect(names('alive', 0, 4)).toEqual(['weight']);
    expect(names('alive', 0, 5)).toEqual(['activation', 'weight']);
    expect(names('alive', 0, 19)).toEqual(['activation', 'weight', 'gradient']);
    expect(names('alive', 0, 20)).toEqual(['weight', 'gradient']);
  });
  it('tells made, kept and freed in a range apart', () => {
    expect(names('allocated', 5, 14)).toEqual(['activation', 'temporary']);
    expect(names('kept', 5, 14)).toEqual(['activation']);
    expect(names('freed', 5, 14)).toEqual(['temporary']);
    expect(names('freed', 0, 99)).toEqual(['activation', 'temporary']);
  });
  it('leaves out hidden classes and other devices', () => {
    expect(names('alive', 0, 19, [0])).toEqual(['activation', 'gradient']);
    const profile = profileFromText(kRun);
    const other = selectBlocks(profile, { device: 1, mode: 'alive', from: 0, to: 19 }, new Set());
    expect(other.rows).toHaveLength(0);
    expect(other.groups.blocks).toBe(0);
  });
  it('adds up to the byte, with the rounding apart', () => {
    const profile = profileFromText(kRun);
    const totals = totalsOf(
      profile,
      selectBlocks(profile, { device: 0, mode: 'alive', from: 0, to: 11 }, new Set()).groups,
    );
    expect(totals.tensorBytes).toBe(3300);
    expect(totals.unsureBytes).toBe(3300);
    expect(totals.blockBytes).toBe(1024 + 2048 + 512);
    expect([...totals.byClass]).toEqual([1000, 0, 2000, 300, 0, 284]);
  });
  it('finds the nearest instant of a trace that keeps only some', () => {
    const profile = { ...profileFromText(kRun), complete: false, keyframes: [10, 50, 90] };
    expect(nearestKeyframe(profile, 0)).toBe(10);
    expect(nearestKeyframe(profile, 69)).toBe(50);
    expect(nearestKeyframe(profile, 71)).toBe(90);
    expect(nearestKeyframe({ ...profile, complete: true }, 71)).toBe(71);
  });
});
