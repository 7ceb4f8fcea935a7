import { describe, expect, it } from 'vitest';
import type { Forecast, Prediction, Verdict } from '../../src/data/report.ts';
import { priceWords, techniquesOf, whatIf } from '../../src/data/what_if.ts';

const kGiB = 1024 ** 3;

function prediction(batch: number, used: number, verdict: Verdict, techniques: string[] = []): Prediction {
  return {
    batch,
    techniques,
    allocated: (used - 2) * kGiB,
    reserved: (used - 1) * kGiB,
    used: used * kGiB,
    used_low: (used - 0.5) * kGiB,
    used_high: (used + 1) * kGiB,
    verdict,
    probability: 1,
    margin: (24 - used - 1) * kGiB,
    classes: [],
    phase: 'backward',
    site: '',
  };
}

const card = (id: string, total: number, elsewhere: number) => ({
  id,
  name: id,
  total: total * kGiB,
  elsewhere: elsewhere * kGiB,
  elsewhere_basis: 'assumed',
});

const plain: Forecast = {
  basis_text: '',
  card: card('rtx4090', 24, 1),
  prediction: prediction(8, 10, 'fits'),
  largest_batch: 18,
  largest_unlimited: false,
  batches: [prediction(4, 7, 'fits'), prediction(8, 10, 'fits'), prediction(16, 18, 'fits')],
  fitting: [
    {
      prediction: prediction(8, 6, 'fits', ['checkpointing']),
      words: ['activation checkpointing'],
      price: 'time',
      slower_low: 0.2,
      slower_high: 0.331,
      saves: 4 * kGiB,
      settings: [],
      training: ['other gradients'],
    },
  ],
  falling_short: [],
  refused: [],
  cards: [
    { card: card('small', 10, 0.5), verdict: 'near', margin: -0.4 * kGiB, largest_unlimited: false },
    { card: card('rtx4090', 24, 1), verdict: 'fits', margin: 13 * kGiB, largest_unlimited: false },
  ],
  notes: [],
  whole: true,
};
const checkpointing: Forecast = {
  ...plain,
  prediction: prediction(8, 6, 'fits', ['checkpointing']),
  batches: [prediction(8, 6, 'fits', ['checkpointing']), prediction(16, 9, 'fits', ['checkpointing'])],
};
const forecasts = [plain, checkpointing];
const ask = (batch: number, technique = '', id = '') => whatIf(forecasts, { batch, technique, card: id });

describe('what if', () => {
  it('is the recorded run at first', () => {
    expect(ask(0)).toMatchObject({ used: 10 * kGiB, verdict: 'fits', margin: 13 * kGiB });
    expect(ask(0)?.prediction).toBe(plain.prediction);
  });
  it('takes batches and techniques from the tables only', () => {
    expect(ask(16)?.used).toBe(18 * kGiB);
    expect(ask(16, 'checkpointing')?.used).toBe(9 * kGiB);
    expect(ask(5)).toBeUndefined();
    expect(ask(4, 'checkpointing')).toBeUndefined();
  });
  it("believes the forecast's own verdict of a card, and moves only what is the card's", () => {
    expect(ask(8, '', 'small')).toMatchObject({ used: 9.5 * kGiB, verdict: 'near', margin: -0.4 * kGiB });
    expect(ask(16, '', 'small')).toMatchObject({ used: 17.5 * kGiB, verdict: 'does_not_fit' });
    expect(ask(4, '', 'small')).toMatchObject({ high: 7.5 * kGiB, verdict: 'fits', margin: 2.5 * kGiB });
    expect(ask(8, '', 'rtx4090')).toMatchObject({ used: 10 * kGiB, verdict: 'fits' });
  });
  it('names techniques in words and says their price', () => {
    expect(techniquesOf(forecasts)).toEqual([
      { key: '', words: 'as recorded' },
      { key: 'checkpointing', words: 'activation checkpointing' },
    ]);
    expect(priceWords(plain.fitting[0])).toBe(', 20 to 33 % slower, other gradients');
  });
  it('says nothing without a forecast', () => {
    expect(whatIf([], { batch: 0, technique: '', card: '' })).toBeUndefined();
  });
});
