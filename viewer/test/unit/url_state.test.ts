import { describe, expect, it, vi } from 'vitest';
import { formatHash, kDefaults, parseHash, type State } from '../../src/data/url_state.ts';

const kOther: State = {
  trace: 2,
  device: 3,
  tick: 4711,
  mode: 'kept',
  from: 12,
  view: 'modules',
  by: 'class',
  frames: 'all',
  inverted: true,
  flipped: true,
  zoom: ['main', 'a/b', 'c&d=e#%', '<script>', ''],
  search: 'h.0 & "quoted" %41',
  hidden: ['weight', 'unknown'],
  axis: 'time',
  window: [10, 999],
  table: 'tensors',
  sort: 'name',
  opened: ['.', '.h', '.h.0 a/b'],
  block: 77,
  batch: 16,
  technique: 'checkpointing + lora:rank=8',
  card: 'rtx4090',
  theme: 'dark',
};

describe('the state in the address', () => {
  it('comes back, field by field', () => {
    for (const key of Object.keys(kDefaults) as (keyof State)[]) {
      const state = { ...kDefaults, [key]: kOther[key] };
      expect(kOther[key], key).not.toEqual(kDefaults[key]);
      expect(parseHash(formatHash(state)), key).toEqual(state);
    }
    expect(parseHash(formatHash(kOther))).toEqual(kOther);
  });
  it('leaves defaults out', () => {
    expect(formatHash(kDefaults)).toBe('#v=1');
    expect(parseHash('')).toEqual(kDefaults);
  });
  it('ignores what it does not understand, and says so', () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    expect(parseHash('#v=1&view=nonsense&t=abc&w=9/3&inv=maybe&q=%E0%A4%A&new=1')).toEqual(kDefaults);
    expect(said).toHaveBeenCalledTimes(5);
    said.mockRestore();
  });
});
