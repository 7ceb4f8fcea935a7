// The timeline: memory stacked by class over the events or the time of a run.
import { type Axis, bandsOf, bucketsByColumn, type Window } from '../data/curve.ts';
import { grouped, size } from '../data/format.ts';
import type { Curve, Mark, Profile, Tick } from '../data/profile.ts';
import { type Context, fitText, textWidth } from './text.ts';
import { classColor, kBoldFont, kSmallFont, kStackOrder, type Theme, textOn } from './theme.ts';

export const kMargin = { left: 66, right: 14, top: 44, bottom: 22 };

export interface TimelineScene {
  profile: Profile;
  curve: Curve;
  device: number;
  capacity: number; // bytes; 0: not known
  axis: Axis;
  window: Window;
  hidden: ReadonlySet<number>;
  selected: Tick;
  range: [Tick, Tick] | undefined;
  hovered: number; // CSS pixels; -1: none
  theme: Theme;
  width: number;
  height: number;
  most?: number; // bytes that the scale is made for; the curve's own where not given
}

export interface Scale {
  left: number;
  right: number;
  top: number;
  bottom: number;
  highest: number; // bytes at the top
  capacityShown: boolean;
}

// The highest of all that is drawn of a curve.
export function mostBytes(curve: Curve | undefined): number {
  let most = 1;
  for (let i = 0; curve !== undefined && i < curve.length; ++i)
    most = Math.max(most, curve.highest[i], curve.reserved[i], curve.used[i]);
  return most;
}

// The top of the y axis: the capacity where the run comes near it, else somewhat above the run's highest.
export function scaleOf(scene: TimelineScene): Scale {
  const { curve, capacity } = scene;
  const most = scene.most ?? mostBytes(curve);
  const capacityShown = capacity > 0 && most >= 0.45 * capacity;
  return {
    left: kMargin.left,
    right: scene.width - kMargin.right,
    top: kMargin.top,
    bottom: scene.height - kMargin.bottom,
    highest: Math.max(capacityShown ? capacity * 1.04 : 0, most * 1.06),
    capacityShown,
  };
}

export function xOf(scene: TimelineScene, scale: Scale, value: number): number {
  const { from, to } = scene.window;
  return scale.left + ((value - from) / (to - from)) * (scale.right - scale.left);
}

export function yOf(scale: Scale, bytes: number): number {
  return scale.bottom - (bytes / scale.highest) * (scale.bottom - scale.top);
}

// Where a tick stands on the axis.
export function axisValue(scene: Pick<TimelineScene, 'curve' | 'axis'>, tick: Tick): number {
  const { curve, axis } = scene;
  if (axis === 'events') return tick;
  let low = 0;
  let high = curve.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (curve.tick[middle] <= tick) low = middle + 1;
    else high = middle;
  }
  return curve.length > 0 ? curve.time[Math.max(0, low - 1)] : 0;
}

// The bucket under a place on the canvas; -1: none.
export function bucketUnder(scene: TimelineScene, scale: Scale, x: number): number {
  const columns = Math.max(1, Math.round(scale.right - scale.left));
  const column = Math.floor(((x - scale.left) / (scale.right - scale.left)) * columns);
  if (column < 0 || column >= columns) return -1;
  return bucketsByColumn(scene.curve, scene.axis, scene.window, columns)[column];
}

const kSteps = [1, 2, 5];
const kUnits = [1, 1024, 1024 ** 2, 1024 ** 3, 1024 ** 4];

// Round sizes, about `count` of them up to `highest`.
export function gridLines(highest: number, count: number): number[] {
  const wanted = highest / count;
  let best = wanted;
  for (const unit of kUnits) {
    for (let power = 1; power <= 100; power *= 10) {
      for (const step of kSteps) {
        const candidate = unit * power * step;
        if (candidate >= wanted && (best === wanted || candidate < best)) best = candidate;
      }
    }
  }
  const lines: number[] = [];
  for (let value = best; value < highest; value += best) lines.push(value);
  return lines;
}

export function drawTimeline(context: Context, scene: TimelineScene): void {
  const { theme, width, height, curve } = scene;
  const scale = scaleOf(scene);
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, height);
  context.font = kSmallFont;
  context.textBaseline = 'middle';
  drawGrid(context, scene, scale);
  if (curve.length === 0) return;
  const columns = Math.max(1, Math.round(scale.right - scale.left));
  const buckets = bucketsByColumn(curve, scene.axis, scene.window, columns);
  drawStack(context, scene, scale, buckets);
  drawLine(context, scene, scale, buckets, curve.reserved, theme.faint, []);
  drawLine(context, scene, scale, buckets, curve.used, theme.text, [4, 3]);
  drawBands(context, scene, scale);
  drawCapacity(context, scene, scale);
  drawLineNames(context, scene, scale, buckets);
  drawRange(context, scene, scale);
  drawMarks(context, scene, scale);
}

function drawGrid(context: Context, scene: TimelineScene, scale: Scale): void {
  const { theme } = scene;
  context.textAlign = 'right';
  context.lineWidth = 1;
  for (const bytes of [0, ...gridLines(scale.highest, 5)]) {
    const y = Math.round(yOf(scale, bytes)) + 0.5;
    context.strokeStyle = bytes === 0 ? theme.line : theme.grid;
    line(context, scale.left, y, scale.right, y);
    context.fillStyle = theme.faint;
    context.fillText(bytes === 0 ? '0' : size(bytes).replace(/\.0+ /, ' '), scale.left - 6, y);
  }
  context.textAlign = 'left';
  context.fillStyle = theme.faint;
  drawTicks(context, scene, scale);
}

// Round numbers of events or of seconds along the bottom, as many as have room for their words.
function drawTicks(context: Context, scene: TimelineScene, scale: Scale): void {
  const { theme, axis, window } = scene;
  const y = scale.bottom + 12;
  const unit = axis === 'events' ? 1 : timeUnit(window.to - window.from);
  const span = (window.to - window.from) / unit;
  const room = Math.max(2, Math.floor((scale.right - scale.left) / 110));
  const step = roundStep(span / room, axis === 'events');
  context.fillStyle = theme.faint;
  context.fillText(axis === 'events' ? 'event' : (kTimeUnits.get(unit) ?? ''), 6, y);
  for (let at = Math.ceil(window.from / unit / step) * step; at <= window.to / unit; at += step) {
    const x = xOf(scene, scale, at * unit);
    if (x < scale.left - 1 || x > scale.right + 1) continue;
    const words = axis === 'events' ? grouped(at) : String(Number(at.toFixed(6)));
    const width = textWidth(context, words);
    context.fillText(words, Math.min(Math.max(x - width / 2, scale.left - 8), scale.right - width), y);
    context.strokeStyle = theme.line;
    line(context, Math.round(x) + 0.5, scale.bottom, Math.round(x) + 0.5, scale.bottom + 4);
  }
}

const kTimeUnits = new Map([
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
]);

function timeUnit(span: number): number {
  return span >= 2e9 ? 1e9 : span >= 2e6 ? 1e6 : 1e3;
}

// The next of 1, 2, 5, 10, 20, ... that is at least `least`.
export function roundStep(least: number, whole: boolean): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10) * power;
  return whole ? Math.max(1, Math.round(step)) : step;
}

function line(context: Context, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

function drawStack(context: Context, scene: TimelineScene, scale: Scale, buckets: Int32Array): void {
  const { profile, curve, theme, hidden } = scene;
  const step = (scale.right - scale.left) / buckets.length;
  const below = new Float64Array(buckets.length);
  for (const key of kStackOrder) {
    const band = profile.classes.findIndex((memoryClass) => memoryClass.key === key);
    const values = curve.bands.get(band);
    if (values === undefined || hidden.has(band)) continue;
    const above = below.slice();
    for (let i = 0; i < buckets.length; ++i) if (buckets[i] >= 0) above[i] += values[buckets[i]];
    context.fillStyle = classColor(theme, key);
    context.beginPath();
    context.moveTo(scale.left, yOf(scale, below[0]));
    for (let i = 0; i < buckets.length; ++i) {
      const y = yOf(scale, above[i]);
      context.lineTo(scale.left + i * step, y);
      context.lineTo(scale.left + (i + 1) * step, y);
    }
    for (let i = buckets.length - 1; i >= 0; --i) {
      const y = yOf(scale, below[i]);
      context.lineTo(scale.left + (i + 1) * step, y);
      context.lineTo(scale.left + i * step, y);
    }
    context.closePath();
    context.fill();
    nameArea(context, scene, scale, key, profile.classes[band].words, below, above, step);
    below.set(above);
  }
}

// Writes the class's name inside its area where there is room for it, so that colour never stands alone.
function nameArea(
  context: Context,
  scene: TimelineScene,
  scale: Scale,
  key: string,
  words: string,
  below: Float64Array,
  above: Float64Array,
  step: number,
): void {
  const columns = Math.ceil((textWidth(context, words) + 10) / step);
  const tall = 15;
  let best = -1;
  let bestRoom = tall;
  for (let i = 0; i + columns <= below.length; i += Math.max(1, columns >> 2)) {
    let high = Number.POSITIVE_INFINITY;
    let low = 0;
    for (let j = i; j < i + columns; ++j) {
      high = Math.min(high, above[j]);
      low = Math.max(low, below[j]);
    }
    const room = yOf(scale, low) - yOf(scale, high);
    if (room > bestRoom) {
      best = i;
      bestRoom = room;
      // The first place that is roomy enough reads best: further right lie the marks.
      if (room > 3 * tall) break;
    }
  }
  if (best < 0) return;
  let low = 0;
  let high = Number.POSITIVE_INFINITY;
  for (let j = best; j < best + columns; ++j) {
    high = Math.min(high, above[j]);
    low = Math.max(low, below[j]);
  }
  context.fillStyle = textOn(classColor(scene.theme, key));
  context.fillText(words, scale.left + best * step + 5, (yOf(scale, low) + yOf(scale, high)) / 2);
}

function drawLine(
  context: Context,
  _scene: TimelineScene,
  scale: Scale,
  buckets: Int32Array,
  values: Float64Array,
  color: string,
  dash: number[],
): void {
  const step = (scale.right - scale.left) / buckets.length;
  context.strokeStyle = color;
  context.lineWidth = 1.25;
  context.setLineDash(dash);
  context.beginPath();
  let drawing = false;
  for (let i = 0; i < buckets.length; ++i) {
    const value = buckets[i] < 0 ? -1 : values[buckets[i]];
    if (value < 0) {
      drawing = false;
      continue;
    }
    const y = yOf(scale, value);
    if (drawing) context.lineTo(scale.left + i * step, y);
    else context.moveTo(scale.left + i * step, y);
    context.lineTo(scale.left + (i + 1) * step, y);
    drawing = true;
  }
  context.stroke();
  context.setLineDash([]);
}

function drawLineNames(context: Context, scene: TimelineScene, scale: Scale, buckets: Int32Array): void {
  const { curve, theme } = scene;
  // At the right end, unless a mark with its own name stands there.
  const crowded = scene.profile.marks.some((mark) => {
    const x = xOf(scene, scale, axisValue(scene, mark.tick));
    return mark.device === scene.device && x > scale.right - 170 && x <= scale.right + 1;
  });
  const right = crowded ? scale.right - 190 : scale.right - 4;
  const last = buckets[Math.max(0, Math.min(buckets.length - 1, Math.round(right - scale.left) - 1))];
  if (last < 0) return;
  context.textAlign = 'right';
  for (const [words, bytes, color] of [
    ['device used', curve.used[last], theme.text],
    ['reserved', curve.reserved[last], theme.faint],
  ] as const) {
    if (bytes <= 0) continue;
    halo(context, theme, words, right, yOf(scale, bytes) + (words === 'reserved' ? 9 : -9), color);
  }
  context.textAlign = 'left';
}

// Text that stays readable on any fill.
function halo(context: Context, theme: Theme, text: string, x: number, y: number, color: string): void {
  const width = textWidth(context, text) + 6;
  context.globalAlpha = 0.78;
  context.fillStyle = theme.background;
  context.fillRect(context.textAlign === 'right' ? x - width + 3 : x - 3, y - 7, width, 14);
  context.globalAlpha = 1;
  context.fillStyle = color;
  context.fillText(text, x, y);
}

function drawCapacity(context: Context, scene: TimelineScene, scale: Scale): void {
  const { theme, capacity } = scene;
  if (capacity === 0) return;
  const text = `${size(capacity)} on the device`;
  if (!scale.capacityShown) {
    halo(context, theme, `↑ ${text}`, scale.left + 6, scale.top + 9, theme.faint);
    return;
  }
  const y = Math.round(yOf(scale, capacity)) + 0.5;
  context.strokeStyle = theme.danger;
  context.lineWidth = 1.5;
  context.setLineDash([7, 4]);
  line(context, scale.left, y, scale.right, y);
  context.setLineDash([]);
  halo(context, theme, text, scale.left + 6, y + 10, theme.danger);
}

// Two strips above the plot: steps, and phases below them.
function drawBands(context: Context, scene: TimelineScene, scale: Scale): void {
  const { profile, curve, theme } = scene;
  for (const [of, top, name] of [
    ['step', 4, 'step'],
    ['phase', 22, 'phase'],
  ] as const) {
    context.fillStyle = theme.faint;
    context.textAlign = 'right';
    context.fillText(name, scale.left - 6, top + 8);
    context.textAlign = 'left';
    const cells = Math.max(1, Math.floor((scale.right - scale.left) / (of === 'step' ? 2 : 4)));
    for (const band of bandsOf(curve, of, scene.axis, scene.window, cells)) {
      const left = Math.max(scale.left, xOf(scene, scale, band.from));
      const right = Math.min(scale.right, xOf(scene, scale, band.to));
      if (right <= left || right - left < 0.4) continue;
      const words = of === 'step' ? `${band.value}` : profile.phases[band.value];
      context.fillStyle =
        of === 'step' ? (band.value % 2 === 0 ? theme.grid : theme.line) : phaseColor(theme, words);
      context.fillRect(left, top, Math.max(0.5, right - left - 0.5), 16);
      const text = fitText(
        context,
        of === 'step' && right - left > 60 ? `step ${words}` : words,
        right - left - 4,
      );
      if (text === '' && !(of === 'step' && right - left > 9)) continue;
      context.fillStyle = theme.text;
      context.fillText(text || words, left + 3, top + 8.5);
    }
  }
}

const kPhaseColors: Record<string, [string, string]> = {
  load: ['#dfe3e8', '#30363f'],
  forward: ['#cfe3f5', '#1d3d57'],
  backward: ['#f7d9c4', '#5a3420'],
  'backward (recompute)': ['#f3c4d8', '#5a2a41'],
  optimizer: ['#d3ecdf', '#1e4a38'],
  evaluate: ['#e6ddf4', '#413258'],
  save: ['#f5eebb', '#4f4a1c'],
};

function phaseColor(theme: Theme, phase: string): string {
  const colors = kPhaseColors[phase] ?? kPhaseColors[phase.split(' (')[0]] ?? ['#eceff2', '#22272e'];
  return colors[theme.dark ? 1 : 0];
}

function drawRange(context: Context, scene: TimelineScene, scale: Scale): void {
  if (scene.range === undefined) return;
  const left = Math.max(scale.left, xOf(scene, scale, axisValue(scene, scene.range[0])));
  const right = Math.min(scale.right, xOf(scene, scale, axisValue(scene, scene.range[1])));
  if (right < left) return;
  context.globalAlpha = 0.16;
  context.fillStyle = scene.theme.accent;
  context.fillRect(left, scale.top, right - left, scale.bottom - scale.top);
  context.globalAlpha = 1;
  context.strokeStyle = scene.theme.accent;
  context.lineWidth = 1;
  line(context, left, scale.top, left, scale.bottom);
  line(context, right, scale.top, right, scale.bottom);
}

const kMarkWords: Partial<Record<Mark['kind'], string>> = { peak: 'peak', out_of_memory: 'out of memory' };

function drawMarks(context: Context, scene: TimelineScene, scale: Scale): void {
  const { theme, profile } = scene;
  const vertical = (x: number, color: string, width: number, dash: number[]) => {
    context.strokeStyle = color;
    context.lineWidth = width;
    context.setLineDash(dash);
    line(context, x, scale.top, x, scale.bottom);
    context.setLineDash([]);
  };
  if (scene.hovered >= scale.left && scene.hovered <= scale.right)
    vertical(scene.hovered, theme.faint, 1, [2, 2]);
  for (const mark of profile.marks) {
    const words = kMarkWords[mark.kind];
    if (mark.device !== scene.device || words === undefined) continue;
    const x = xOf(scene, scale, axisValue(scene, mark.tick));
    if (x < scale.left - 1 || x > scale.right + 1) continue;
    const color = mark.kind === 'out_of_memory' ? theme.danger : theme.text;
    vertical(x, color, 1.5, mark.kind === 'peak' ? [3, 3] : []);
    context.font = kBoldFont;
    const right = x + textWidth(context, words) + 12 > scale.right;
    context.textAlign = right ? 'right' : 'left';
    halo(context, theme, words, right ? x - 6 : x + 6, scale.top + (mark.kind === 'peak' ? 9 : 25), color);
    context.textAlign = 'left';
    context.font = kSmallFont;
  }
  const x = xOf(scene, scale, axisValue(scene, scene.selected));
  if (x < scale.left - 1 || x > scale.right + 1) return;
  vertical(x, theme.accent, 2, []);
  context.fillStyle = theme.accent;
  context.beginPath();
  context.moveTo(x - 6, scale.bottom + 9);
  context.lineTo(x + 6, scale.bottom + 9);
  context.lineTo(x, scale.bottom + 1);
  context.closePath();
  context.fill();
}
