// The curve of a stretch of a long run, event by event: what the buckets of the whole run cannot show, added up
// from the lives of blocks.
import { bucketAt, timeAt } from './curve.ts';
import {
  type BlockTable,
  type Bytes,
  type ClassIndex,
  type Curve,
  kNever,
  type Profile,
  roundingClass,
  stepAt,
  type Tick,
} from './profile.ts';

// A stretch of at most so many events is drawn from blocks: half a million lives, which a server sends and a page
// adds up within a tenth of a second.
const kMostEvents = 1 << 20;
const kMostBuckets = 1 << 13; // about two for each pixel of a wide screen
// With so many buckets of the whole run in the window there is nothing to gain.
const kEnough = 1 << 11;
// A curve that has had to join events has at least so many buckets: Curve::kBuckets in analyzer/viewer_data/curve.h.
const kFewestJoined = 1 << 14;

// The stretch around [from, to] whose events are worth asking for, from bucket to bucket of the whole run's curve;
// undefined: that curve has them.
export function stretchToRefine(curve: Curve, from: Tick, to: Tick, ticks: Tick): [Tick, Tick] | undefined {
  const first = Math.max(0, bucketAt(curve, from));
  const last = bucketAt(curve, to);
  if (last < first || last - first >= kEnough) return undefined;
  const begin = curve.tick[first];
  const end = (last + 1 < curve.length ? curve.tick[last + 1] : ticks) - 1;
  const exact = curve.length < kFewestJoined || end - begin <= last - first;
  return exact || end - begin >= kMostEvents ? undefined : [begin, end];
}

// Blocks by the tick at which they begin or end, of those in [from, to].
class Edges {
  private readonly from: Tick;
  private readonly heads: Int32Array;
  private readonly next: Int32Array;
  constructor(ticks: Uint32Array, from: Tick, to: Tick) {
    this.from = from;
    this.heads = new Int32Array(to - from + 1).fill(-1);
    this.next = new Int32Array(ticks.length).fill(-1);
    for (let row = 0; row < ticks.length; ++row) {
      if (ticks[row] < from || ticks[row] > to) continue;
      this.next[row] = this.heads[ticks[row] - from];
      this.heads[ticks[row] - from] = row;
    }
  }
  first(tick: Tick): number {
    return this.heads[tick - this.from];
  }
  after(row: number): number {
    return this.next[row];
  }
}

// `blocks`: every one that lives at any time in [from, to]; others do not matter.
export function finerCurve(
  profile: Profile,
  blocks: BlockTable,
  device: number,
  whole: Curve,
  from: Tick,
  to: Tick,
): Curve {
  const { kinds } = profile;
  const rounding = roundingClass(profile);
  const bands = new Float64Array(profile.classes.length);
  let allocated: Bytes = 0;
  const add = (row: number, sign: 1 | -1) => {
    const kind = blocks.kind[row];
    if (kinds.device[kind] !== device) return;
    bands[kinds.class[kind]] += sign * kinds.bytes[kind];
    bands[rounding] += sign * (kinds.block_bytes[kind] - kinds.bytes[kind]);
    allocated += sign * kinds.block_bytes[kind];
  };
  for (let row = 0; row < blocks.length; ++row)
    if (blocks.allocated[row] < from && blocks.freed[row] >= from) add(row, 1);
  const begins = new Edges(blocks.allocated, from, to);
  const ends = new Edges(blocks.freed, from, Math.min(to, kNever - 1));
  const events = to - from + 1;
  const each = Math.ceil(events / kMostBuckets);
  const length = Math.ceil(events / each);
  const curve = emptyCurve(length, profile.classes.length);
  let coarse = Math.max(0, bucketAt(whole, from));
  let phase = whole.phase[coarse] ?? 0;
  const reserved = reservedSteps(profile, device, from);
  for (let tick = from; tick <= to; ++tick) {
    for (let row = ends.first(tick); row >= 0; row = ends.after(row)) add(row, -1);
    for (let row = begins.first(tick); row >= 0; row = begins.after(row)) {
      add(row, 1);
      phase = kinds.phase[blocks.kind[row]];
    }
    const bucket = Math.floor((tick - from) / each);
    const first = (tick - from) % each === 0;
    if (first) {
      curve.tick[bucket] = tick;
      curve.time[bucket] = timeAt(whole, tick);
      curve.step[bucket] = stepAt(profile, tick);
      curve.phase[bucket] = phase;
      curve.lowest[bucket] = allocated;
    }
    while (coarse + 1 < whole.length && whole.tick[coarse + 1] <= tick) ++coarse;
    // The whole run's bucket knows the most of each; segments say when.
    curve.reserved[bucket] = Math.max(
      curve.reserved[bucket],
      Math.min(reserved(tick), whole.reserved[coarse]),
    );
    curve.used[bucket] = Math.max(curve.used[bucket], whole.used[coarse]);
    curve.lowest[bucket] = Math.min(curve.lowest[bucket], allocated);
    if (first || allocated > curve.highest[bucket]) {
      curve.highest[bucket] = allocated;
      curve.highest_tick[bucket] = tick;
      for (const [band, values] of curve.bands) values[bucket] = bands[band];
    }
  }
  for (const [band, values] of curve.bands)
    if (values.every((bytes) => bytes === 0)) curve.bands.delete(band);
  return curve;
}

// What the caching allocator holds after each event, to be asked in the order of events.
function reservedSteps(profile: Profile, device: number, from: Tick): (tick: Tick) => Bytes {
  const { segments } = profile;
  const changes: [Tick, Bytes][] = [];
  for (let i = 0; i < segments.length; ++i) {
    if (segments.device[i] !== device || segments.caching[i] === 0) continue;
    changes.push([segments.allocated[i], segments.bytes[i]]);
    if (segments.freed[i] !== kNever) changes.push([segments.freed[i], -segments.bytes[i]]);
  }
  changes.sort((a, b) => a[0] - b[0]);
  let at = 0;
  let sum: Bytes = 0;
  const until = (tick: Tick) => {
    for (; at < changes.length && changes[at][0] <= tick; ++at) sum += changes[at][1];
    return sum;
  };
  until(from - 1);
  return until;
}

export function emptyCurve(length = 0, classes: ClassIndex = 0): Curve {
  const ticks = () => new Uint32Array(length);
  const bytes = () => new Float64Array(length);
  return {
    length,
    tick: ticks(),
    time: bytes(),
    step: ticks(),
    phase: new Uint8Array(length),
    highest_tick: ticks(),
    highest: bytes(),
    lowest: bytes(),
    reserved: bytes(),
    used: bytes().fill(-1),
    bands: new Map(Array.from({ length: classes }, (_, band) => [band, bytes()])),
  };
}
