import { useMemo, useRef, useState } from 'preact/hooks';
import { duration, grouped, size } from '../data/format.ts';
import type { Tick } from '../data/profile.ts';
import type { Context } from '../draw/text.ts';
import { classColor, kStackOrder } from '../draw/theme.ts';
import { drawTimeline } from '../draw/timeline.ts';
import { bucketUnder, mostBytes, scaleOf, type TimelineScene } from '../draw/timeline_scale.ts';
import { canvasStyle, drawingScale, pointOn, SaveButtons, useDrawing, useWidth } from './canvas.tsx';
import type { Model } from './model.ts';
import { Tooltip } from './tooltip.tsx';

// A third of the window, so that the views below keep most of it.
const heightFor = (window: number) => Math.round(Math.min(560, Math.max(230, window * 0.29)));
const kDragPixels = 5;

export function TimelineView({ model }: { model: Model }) {
  const { profile, state, update, drawn: curve, theme } = model;
  const [holder, width] = useWidth(1200);
  const most = useMemo(() => mostBytes(model.curve), [model.curve]);
  const height = heightFor(innerHeight / drawingScale());
  const [pointer, setPointer] = useState<{ x: number; y: number; left: number } | undefined>();
  const [dragged, setDragged] = useState<[Tick, Tick] | undefined>();
  const pressed = useRef(-1);
  const scene: TimelineScene = {
    profile,
    curve,
    whole: model.curve,
    device: model.device,
    capacity: model.report?.total_bytes ?? 0,
    axis: state.axis,
    window: model.window,
    hidden: model.hidden,
    selected: model.tick,
    range: dragged ?? (state.mode === 'alive' ? undefined : [model.selection.from, model.selection.to]),
    hovered: pointer?.left ?? -1,
    theme,
    width,
    height,
    most,
  };
  const draw = (context: Context) => drawTimeline(context, scene);
  const canvas = useDrawing(width, height, draw);
  const scale = scaleOf(scene);
  const bucket = pointer === undefined ? -1 : bucketUnder(scene, scale, pointer.left);

  const leftOf = (event: MouseEvent) => pointOn(canvas.current, event).x;
  const tickUnder = (left: number, edge: 'highest' | 'first') => {
    const inside = Math.min(Math.max(left, scale.left), scale.right - 1);
    const under = bucketUnder(scene, scale, inside);
    if (under < 0) return 0;
    return edge === 'highest' ? curve.highest_tick[under] : curve.tick[under];
  };
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    pressed.current = leftOf(event);
    canvas.current?.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent) => {
    const left = leftOf(event);
    setPointer({ x: event.clientX, y: event.clientY, left });
    if (pressed.current < 0 || Math.abs(left - pressed.current) < kDragPixels) return;
    const ends = [tickUnder(pressed.current, 'first'), tickUnder(left, 'first')].sort((a, b) => a - b);
    setDragged([ends[0], ends[1]]);
  };
  const onPointerUp = (event: PointerEvent) => {
    const left = leftOf(event);
    if (dragged !== undefined) {
      update({
        from: dragged[0],
        tick: dragged[1],
        mode: state.mode === 'alive' ? 'kept' : state.mode,
        zoom: [],
        block: -1,
      });
    } else if (pressed.current >= 0) {
      update({ tick: tickUnder(left, 'highest'), mode: 'alive', from: -1, block: -1 });
    }
    pressed.current = -1;
    setDragged(undefined);
  };
  const onWheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomTimeline(model, event.deltaY < 0 ? 0.7 : 1 / 0.7, tickUnder(leftOf(event), 'first'));
  };
  const label = `Memory of GPU ${model.device} over the run, stacked by class. Peak allocated ${size(model.report?.peak_allocated?.bytes ?? 0)}.`;
  return (
    <section class="timeline" aria-label="Timeline" data-ticks={profile.ticks}>
      <div ref={holder} class="canvas-holder">
        <canvas
          ref={canvas}
          role="img"
          aria-label={label}
          class="timeline-canvas"
          style={canvasStyle(width, height)}
          onPointerDown={onPointerDown}
          onPointerMove={onPointerMove}
          onPointerUp={onPointerUp}
          onPointerLeave={() => setPointer(undefined)}
          onWheel={onWheel}
        />
      </div>
      <div class="bar">
        <Legend model={model} />
        <span class="grow" />
        {state.mode !== 'alive' && <RangeBar model={model} />}
        {state.window !== undefined && (
          <button type="button" onClick={() => update({ window: undefined })}>
            whole run
          </button>
        )}
        <span class="segmented" role="group" aria-label="x axis">
          {(['events', 'time'] as const).map((axis) => (
            <button
              type="button"
              key={axis}
              aria-pressed={state.axis === axis}
              onClick={() => update({ axis }, 'replace')}
            >
              {axis}
            </button>
          ))}
        </span>
        <SaveButtons
          picture={{ name: 'vramtrace-timeline', title: 'timeline', width, height, canvas, draw }}
        />
      </div>
      {pointer !== undefined && bucket >= 0 && pressed.current < 0 && (
        <Tooltip x={pointer.x} y={pointer.y}>
          <BucketFacts model={model} bucket={bucket} />
        </Tooltip>
      )}
    </section>
  );
}

// Zooms by `factor` around `tick`.
export function zoomTimeline(model: Model, factor: number, tick: Tick): void {
  const { profile, state, update } = model;
  const [from, to] = state.window ?? [0, profile.ticks];
  const first = Math.max(0, Math.round(tick - (tick - from) * factor));
  const last = Math.min(profile.ticks, Math.round(tick + (to - tick) * factor));
  if (last - first < 8) return;
  update({ window: first <= 0 && last >= profile.ticks ? undefined : [first, last] }, 'replace');
}

function BucketFacts({ model, bucket }: { model: Model; bucket: number }) {
  const { profile, drawn: curve } = model;
  const rows = [...curve.bands]
    .map(([band, values]) => ({ band, bytes: values[bucket] }))
    .filter((row) => row.bytes > 0);
  rows.sort((a, b) => b.bytes - a.bytes);
  return (
    <>
      <strong>{size(curve.highest[bucket])} allocated</strong>
      <div class="faint">
        step {curve.step[bucket]}, {profile.phases[curve.phase[bucket]]}, event{' '}
        {grouped(curve.highest_tick[bucket])}, {curve === model.curve ? '' : 'about '}
        {duration(curve.time[bucket])}
      </div>
      <table class="facts">
        <tbody>
          {rows.map((row) => (
            <tr key={row.band}>
              <td>
                <Swatch model={model} band={row.band} /> {profile.classes[row.band].words}
              </td>
              <td class="number">{size(row.bytes)}</td>
            </tr>
          ))}
          <tr>
            <td>reserved</td>
            <td class="number">{size(curve.reserved[bucket])}</td>
          </tr>
          {curve.used[bucket] >= 0 && (
            <tr>
              <td>device used</td>
              <td class="number">{size(curve.used[bucket])}</td>
            </tr>
          )}
        </tbody>
      </table>
    </>
  );
}

export function Swatch({ model, band }: { model: Model; band: number }) {
  return (
    <span class="swatch" style={{ background: classColor(model.theme, model.profile.classes[band].key) }} />
  );
}

function Legend({ model }: { model: Model }) {
  const { profile, curve, state, update } = model;
  const bands = kStackOrder
    .map((key) => profile.classes.findIndex((known) => known.key === key))
    .filter((band) => curve.bands.has(band));
  const toggle = (key: string) => {
    const hidden = state.hidden.includes(key)
      ? state.hidden.filter((other) => other !== key)
      : [...state.hidden, key];
    update({ hidden });
  };
  return (
    <span class="legend" role="group" aria-label="Classes shown">
      {bands.map((band) => {
        const { key, words, meaning } = profile.classes[band];
        return (
          <button
            type="button"
            key={key}
            class="legend-item"
            aria-pressed={!state.hidden.includes(key)}
            title={`${meaning}. Click: hide or show`}
            onClick={() => toggle(key)}
          >
            <Swatch model={model} band={band} /> {words}
          </button>
        );
      })}
    </span>
  );
}

const kModes = {
  kept: 'allocated in it and kept',
  allocated: 'allocated in it',
  freed: 'freed in it',
  alive: 'alive at its end',
} as const;

function RangeBar({ model }: { model: Model }) {
  const { state, update, selection } = model;
  return (
    <span class="range">
      {grouped(selection.to - selection.from + 1)} events:{' '}
      <select
        aria-label="What of the range"
        value={state.mode}
        onChange={(event) => update({ mode: event.currentTarget.value as keyof typeof kModes })}
      >
        {Object.entries(kModes).map(([mode, words]) => (
          <option key={mode} value={mode}>
            {words}
          </option>
        ))}
      </select>
      <button type="button" onClick={() => update({ window: [selection.from, selection.to + 1] })}>
        zoom in
      </button>
      <button type="button" onClick={() => update({ mode: 'alive', from: -1 })}>
        clear range
      </button>
    </span>
  );
}
