import { useMemo } from 'preact/hooks';
import { wholeWindow } from '../data/curve.ts';
import { share, size } from '../data/format.ts';
import type { Profile } from '../data/profile.ts';
import { classColor, kStackOrder } from '../draw/theme.ts';
import { drawTimeline } from '../draw/timeline.ts';
import { mostBytes, type TimelineScene } from '../draw/timeline_scale.ts';
import { canvasStyle, useDrawing, useWidth } from './canvas.tsx';
import { explainedOf, type Model } from './model.ts';

const kHeight = 150;

interface Rank {
  index: number; // of the trace
  profile: Profile;
  device: number;
  peak: number;
  most: number;
}

// The processes of a run side by side, on one scale: which one needs most, and of what.
export function RanksView({ model, profiles }: { model: Model; profiles: Profile[] }) {
  const ranks = useMemo(() => ranksOf(profiles), [profiles]);
  const most = Math.max(...ranks.map((rank) => rank.most), 1);
  const highest = Math.max(...ranks.map((rank) => rank.peak));
  const lowest = Math.min(...ranks.map((rank) => rank.peak));
  return (
    <div class="ranks scroller">
      <p>
        The peak of allocated bytes lies between {size(lowest)} and {size(highest)}
        {lowest < highest ? `, ${share(highest - lowest, highest)} apart` : ': all ranks need the same'}.
      </p>
      {ranks.map((rank) => (
        <RankRow
          key={`${rank.index}/${rank.device}`}
          model={model}
          rank={rank}
          most={most}
          highest={highest}
        />
      ))}
    </div>
  );
}

function ranksOf(profiles: Profile[]): Rank[] {
  return profiles.flatMap((profile, index) =>
    profile.base
      ? []
      : profile.devices.map((device) => ({
          index,
          profile,
          device,
          peak: profile.report.devices.find((known) => known.device === device)?.peak_allocated?.bytes ?? 0,
          most: mostBytes(profile.curves.get(device)),
        })),
  );
}

function RankRow(props: { model: Model; rank: Rank; most: number; highest: number }) {
  const { model, rank, most, highest } = props;
  const { profile, device, index } = rank;
  const [holder, width] = useWidth(900);
  const report = profile.report.devices.find((known) => known.device === device);
  const curve = profile.curves.get(device);
  const explained = explainedOf(profile, device);
  const scene: TimelineScene | undefined = curve && {
    profile,
    curve,
    device,
    capacity: report?.total_bytes ?? 0,
    axis: model.state.axis,
    window: wholeWindow(curve, model.state.axis, profile.ticks),
    hidden: model.hidden,
    selected: explained.tick,
    range: undefined,
    hovered: -1,
    theme: model.theme,
    width,
    height: kHeight,
    most,
  };
  const canvas = useDrawing(width, kHeight, (context) => scene && drawTimeline(context, scene));
  const classes = [...(explained.breakdown?.classes ?? [])].sort(
    (a, b) => kStackOrder.indexOf(a.key) - kStackOrder.indexOf(b.key),
  );
  const { rank: number, world_size } = profile.report.program;
  return (
    <section class="rank">
      <div class="bar">
        <h2>
          rank {number}
          {world_size > 1 ? ` of ${world_size}` : ''}, GPU {device}
        </h2>
        <strong>{size(rank.peak)}</strong> peak allocated
        {rank.peak === highest && <span class="tag">most</span>}
        {report?.out_of_memory !== undefined && <span class="tag danger">out of memory</span>}
        <span class="faint">{size(report?.peak_reserved?.bytes ?? 0)} reserved</span>
        {classes.map((row) => (
          <span key={row.key}>
            <span class="swatch" style={{ background: classColor(model.theme, row.key) }} /> {row.words}{' '}
            {size(row.bytes)}
          </span>
        ))}
        <span class="grow" />
        <span class="faint">{profile.name}</span>
        <button
          type="button"
          aria-pressed={model.state.trace === index && model.device === device}
          onClick={() =>
            model.update({
              trace: index,
              device,
              tick: -1,
              zoom: [],
              block: -1,
              window: undefined,
              view: 'flame',
            })
          }
        >
          look at it
        </button>
      </div>
      <div ref={holder} class="canvas-holder">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Memory of rank ${number}, peak ${size(rank.peak)}`}
          style={canvasStyle(width, kHeight)}
        />
      </div>
    </section>
  );
}
