// The predicted peak as one bar: classes, what the allocator keeps, what is elsewhere, the uncertainty, the card.
import { size } from '../data/format.ts';
import type { WhatIf } from '../data/what_if.ts';
import { type Context, fitText } from './text.ts';
import { classColor, kSmallFont, kStackOrder, type Theme, textOn } from './theme.ts';

export const kPredictionHeight = 96;
const kTop = 26;
const kTall = 38;

export interface PredictionScene {
  what: WhatIf;
  theme: Theme;
  width: number;
  most: number; // bytes at the right end
}

export function drawPrediction(context: Context, scene: PredictionScene): void {
  const { what, theme, width } = scene;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, kPredictionHeight);
  context.font = kSmallFont;
  context.textBaseline = 'middle';
  const x = (bytes: number) => 4 + (bytes / scene.most) * (width - 8);
  const classes = [...what.prediction.classes].sort(
    (a, b) => kStackOrder.indexOf(a.key) - kStackOrder.indexOf(b.key),
  );
  let at = 0;
  const part = (bytes: number, color: string, words: string) => {
    if (bytes <= 0) return;
    const left = x(at);
    at += bytes;
    const right = x(at);
    context.fillStyle = color;
    context.fillRect(left, kTop, Math.max(0.5, right - left - 0.5), kTall);
    const text = fitText(context, words, right - left - 8);
    if (text === '') return;
    context.fillStyle = textOn(color);
    context.fillText(text, left + 4, kTop + kTall / 2);
  };
  for (const row of classes) part(row.bytes, classColor(theme, row.key), row.words);
  part(what.prediction.reserved - at, theme.merged, 'cached free');
  part(what.used - at, theme.grid, 'context and others');
  // From the least to the most that is expected.
  const middle = kTop + kTall + 10;
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  const line = (x0: number, y0: number, x1: number, y1: number) => {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  };
  line(x(what.low), middle, x(what.high), middle);
  for (const end of [what.low, what.high]) line(x(end), middle - 5, x(end), middle + 5);
  context.fillStyle = theme.text;
  context.textAlign = x(what.used) > width / 2 ? 'right' : 'left';
  context.fillText(
    `${size(what.used)} used, between ${size(what.low)} and ${size(what.high)}`,
    x(what.used),
    middle + 14,
  );
  const capacity = x(what.card.total);
  context.strokeStyle = theme.danger;
  context.setLineDash([6, 4]);
  line(capacity, 16, capacity, middle + 6);
  context.setLineDash([]);
  context.fillStyle = theme.danger;
  context.textAlign = capacity > width / 2 ? 'right' : 'left';
  context.fillText(`${what.card.name}: ${size(what.card.total)}`, capacity, 8);
  context.textAlign = 'left';
}
