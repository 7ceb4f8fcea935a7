// Where things stand on a timeline: bytes upwards, events or time to the right.
import { type Axis, bucketsByColumn, timeAt, type Window } from '../data/curve.ts';
import type { Curve, Profile, Tick } from '../data/profile.ts';
import { type Context, textWidth } from './text.ts';
import type { Theme } from './theme.ts';

export const kMargin = { left: 66, right: 14, top: 44, bottom: 22 };

export interface TimelineScene {
  profile: Profile;
  curve: Curve;
  whole?: Curve; // of the whole run, where `curve` is that of a stretch
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
export function axisValue(scene: Pick<TimelineScene, 'curve' | 'whole' | 'axis'>, tick: Tick): number {
  return scene.axis === 'events' ? tick : timeAt(scene.whole ?? scene.curve, tick);
}

// The bucket under a place on the canvas; -1: none.
export function bucketUnder(scene: TimelineScene, scale: Scale, x: number): number {
  const columns = Math.max(1, Math.round(scale.right - scale.left));
  const column = Math.floor(((x - scale.left) / (scale.right - scale.left)) * columns);
  if (column < 0 || column >= columns) return -1;
  return bucketsByColumn(scene.curve, scene.axis, scene.window, columns)[column];
}

export function line(context: Context, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

// Text that stays readable on any fill.
export function halo(
  context: Context,
  theme: Theme,
  text: string,
  x: number,
  y: number,
  color: string,
): void {
  const width = textWidth(context, text) + 6;
  context.globalAlpha = 0.78;
  context.fillStyle = theme.background;
  context.fillRect(context.textAlign === 'right' ? x - width + 3 : x - 3, y - 7, width, 14);
  context.globalAlpha = 1;
  context.fillStyle = color;
  context.fillText(text, x, y);
}
