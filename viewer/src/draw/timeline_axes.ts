// What stands around a timeline's areas: the scales, steps and phases, capacity, the range, marks.
import { bandsOf } from '../data/curve.ts';
import { grouped, size } from '../data/format.ts';
import type { Mark } from '../data/profile.ts';
import { type Context, fitText, textWidth } from './text.ts';
import { kBoldFont, kSmallFont, type Theme } from './theme.ts';
import { axisValue, halo, line, type Scale, type TimelineScene, xOf, yOf } from './timeline_scale.ts';

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

export function drawGrid(context: Context, scene: TimelineScene, scale: Scale): void {
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

export function drawCapacity(context: Context, scene: TimelineScene, scale: Scale): void {
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
export function drawBands(context: Context, scene: TimelineScene, scale: Scale): void {
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

export function drawRange(context: Context, scene: TimelineScene, scale: Scale): void {
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

export function drawMarks(context: Context, scene: TimelineScene, scale: Scale): void {
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
