// What the what-if panel says, from tables that `vramtrace forecast` made: no prediction is computed here, only
// chosen, and put on another card.
import type { Bytes } from './profile.ts';
import type { Candidate, CardFit, Forecast, ForecastCard, Prediction, Verdict } from './report.ts';

export interface Choice {
  batch: number; // 0: the recorded one
  technique: string; // '' for none; see techniqueKey
  card: string; // '' for the recording's
}

export interface WhatIf {
  prediction: Prediction;
  card: ForecastCard;
  used: Bytes;
  low: Bytes;
  high: Bytes;
  verdict: Verdict;
  margin: Bytes; // the card's total less `high`
  fit: CardFit | undefined; // with the technique, at the recorded batch
}

export const techniqueKey = (prediction: Prediction) => prediction.techniques.join(' + ');

export function techniquesOf(forecasts: readonly Forecast[]): { key: string; words: string }[] {
  const words = new Map<string, string>();
  for (const forecast of forecasts) {
    for (const candidate of [...forecast.fitting, ...forecast.falling_short])
      words.set(techniqueKey(candidate.prediction), candidate.words.join(' + '));
  }
  return forecasts.flatMap(({ prediction }) =>
    prediction === undefined
      ? []
      : [{ key: techniqueKey(prediction), words: words.get(techniqueKey(prediction)) ?? 'as recorded' }],
  );
}

// undefined where the tables have no such batch.
export function whatIf(forecasts: readonly Forecast[], choice: Choice): WhatIf | undefined {
  const forecast =
    forecasts.find(({ prediction }) => prediction && techniqueKey(prediction) === choice.technique) ??
    forecasts[0];
  if (forecast?.prediction === undefined) return undefined;
  const wanted = choice.batch === 0 ? forecast.prediction.batch : choice.batch;
  const prediction =
    wanted === forecast.prediction.batch
      ? forecast.prediction
      : forecast.batches.find((row) => row.batch === wanted);
  if (prediction === undefined) return undefined;
  const fit = forecast.cards.find((row) => row.card.id === choice.card);
  const own = choice.card === '' || fit === undefined || fit.card.id === forecast.card.id;
  const card = own ? forecast.card : fit.card;
  // What PyTorch reserves is the same on every card that holds it; context and libraries are the card's.
  const shift = own ? 0 : card.elsewhere - forecast.card.elsewhere;
  const result = {
    prediction,
    card,
    used: prediction.used + shift,
    low: prediction.used_low + shift,
    high: prediction.used_high + shift,
    fit,
  };
  const margin = card.total - result.high;
  // Where the forecast itself judged this card and batch, its verdict: it has replayed the allocator there.
  if (own) return { ...result, verdict: prediction.verdict, margin: prediction.margin };
  if (prediction === forecast.prediction) return { ...result, verdict: fit.verdict, margin: fit.margin };
  const verdict = result.high <= card.total ? 'fits' : result.low > card.total ? 'does_not_fit' : 'near';
  return { ...result, verdict, margin };
}

// ", 20 to 33 % slower, changes the gradients"
export function priceWords(candidate: Candidate): string {
  const slower =
    candidate.slower_high > 0.005
      ? [`${Math.round(100 * candidate.slower_low)} to ${Math.round(100 * candidate.slower_high)} % slower`]
      : [];
  return [...slower, ...candidate.training].map((text) => `, ${text}`).join('');
}
