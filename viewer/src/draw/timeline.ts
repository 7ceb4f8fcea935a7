// The timeline: memory stacked by class over the events or the time of a run.
import { bucketsByColumn } from '../data/curve.ts';
import { type Context, textWidth } from './text.ts';
import { classColor, kSmallFont, kStackOrder, textOn } from './theme.ts';
import { drawBands, drawCapacity, drawGrid, drawMarks, drawRange } from './timeline_axes.ts';
import { axisValue, halo, type Scale, scaleOf, type TimelineScene, xOf, yOf } from './timeline_scale.ts';

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
