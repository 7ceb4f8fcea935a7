import { useMemo } from 'preact/hooks';
import { grouped, size } from '../data/format.ts';
import { priceWords, techniqueKey, techniquesOf, whatIf } from '../data/what_if.ts';
import { drawPrediction, kPredictionHeight } from '../draw/prediction.ts';
import type { Context } from '../draw/text.ts';
import { classColor } from '../draw/theme.ts';
import { canvasStyle, SaveButtons, useDrawing, useWidth } from './canvas.tsx';
import type { Model } from './model.ts';

const kVerdicts: Record<string, string> = {
  fits: 'fits',
  near: 'may or may not fit',
  does_not_fit: 'does not fit',
  unknown: 'cannot be judged from this trace',
  '': '',
};

// Batch, technique and GPU chosen from the forecast's tables: no server, no guess between two rows.
export function WhatIfView({ model }: { model: Model }) {
  const { profile, state, update, theme } = model;
  const { forecasts } = profile;
  const [holder, width] = useWidth(900);
  const techniques = useMemo(() => techniquesOf(forecasts), [forecasts]);
  const chosen = useMemo(
    () => whatIf(forecasts, { batch: state.batch, technique: state.technique, card: state.card }),
    [forecasts, state.batch, state.technique, state.card],
  );
  const forecast =
    forecasts.find(({ prediction }) => prediction && techniqueKey(prediction) === state.technique) ??
    forecasts[0];
  const batches = forecast.batches.map((row) => row.batch);
  const current = chosen ?? whatIf(forecasts, { batch: 0, technique: state.technique, card: state.card });
  const most = Math.max(current?.card.total ?? 1, current?.high ?? 1) * 1.03;
  const draw = (context: Context) =>
    current && drawPrediction(context, { what: current, theme, width, most });
  const canvas = useDrawing(width, kPredictionHeight, draw);
  if (current === undefined) return <p class="empty">The trace holds too little for a forecast.</p>;
  const candidate = [...forecasts[0].fitting, ...forecasts[0].falling_short].find(
    (row) => techniqueKey(row.prediction) === state.technique,
  );
  return (
    <div class="what-if scroller" tabIndex={0} role="region" aria-label="What if">
      <fieldset>
        <legend>batch</legend>
        <span class="choices">
          {batches.map((batch) => (
            <button
              type="button"
              key={batch}
              aria-pressed={batch === current.prediction.batch}
              onClick={() => update({ batch }, 'replace')}
            >
              {grouped(batch)}
            </button>
          ))}
        </span>
      </fieldset>
      <fieldset>
        <legend>technique</legend>
        <span class="choices">
          {techniques.map(({ key, words }) => (
            <button
              type="button"
              key={key}
              aria-pressed={key === state.technique}
              onClick={() => update({ technique: key }, 'replace')}
            >
              {words}
            </button>
          ))}
        </span>
        {candidate !== undefined && (
          <p class="wrap">
            {candidate.settings.map((setting) => (
              <code key={setting.technique}>{setting.pytorch} </code>
            ))}
            <span class="faint">{priceWords(candidate).replace(/^, /, '')}</span>
          </p>
        )}
      </fieldset>
      <fieldset>
        <legend>GPU</legend>
        <select
          aria-label="Card"
          value={state.card || forecast.card.id}
          onChange={(event) => update({ card: event.currentTarget.value }, 'replace')}
        >
          {forecast.cards.every((row) => row.card.id !== forecast.card.id) && (
            <option value={forecast.card.id}>
              {forecast.card.name}, {size(forecast.card.total)}
            </option>
          )}
          {forecast.cards.map(({ card }) => (
            <option key={card.id} value={card.id}>
              {card.id}: {card.name}, {size(card.total)}
            </option>
          ))}
        </select>
        {current.fit?.largest_batch !== undefined && (
          <span>
            {' '}
            {current.fit.largest_unlimited
              ? 'any batch fits'
              : `batch ${grouped(current.fit.largest_batch)} is the largest that fits it`}
          </span>
        )}
      </fieldset>
      <p>
        <span class={`verdict ${current.verdict}`} role="status">
          {size(current.used)} {kVerdicts[current.verdict]}
        </span>{' '}
        {current.margin >= 0
          ? `${size(current.margin)} to spare in the worst case that is expected`
          : `${size(-current.margin)} short in the worst case that is expected`}
        , {forecast.basis_text}
      </p>
      <div ref={holder} class="canvas-holder">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Predicted peak: ${size(current.used)} of ${size(current.card.total)}`}
          style={canvasStyle(width, kPredictionHeight)}
        />
      </div>
      <div class="bar">
        {current.prediction.classes.map((row) => (
          <span key={row.key}>
            <span class="swatch" style={{ background: classColor(theme, row.key) }} /> {row.words}{' '}
            {size(row.bytes)}
          </span>
        ))}
        <span class="grow" />
        <SaveButtons
          picture={{
            name: 'vramtrace-what-if',
            title: 'predicted peak',
            width,
            height: kPredictionHeight,
            canvas,
            draw,
          }}
        />
      </div>
      <p class="faint">
        Peak in {current.prediction.phase}
        {current.prediction.site !== '' && `, ${current.prediction.site}`}. Other batches and techniques:
        vramtrace forecast.
      </p>
    </div>
  );
}
