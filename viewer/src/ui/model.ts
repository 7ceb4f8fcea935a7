// State in, everything derived from it out; each step is computed anew only when what it reads changed.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { type Window, wholeWindow } from '../data/curve.ts';
import { nearestKeyframe, type Selection, selectBlocks, type Totals, totalsOf } from '../data/live.ts';
import type { Curve, Mark, Profile, Tick } from '../data/profile.ts';
import type { Breakdown, DeviceReport } from '../data/report.ts';
import { formatHash, parseHash, type State } from '../data/url_state.ts';
import { kDark, kLight, type Theme } from '../draw/theme.ts';
import { axisValue } from '../draw/timeline.ts';

export type Update = (change: Partial<State>, how?: 'push' | 'replace') => void;

export function useUrlState(): [State, Update] {
  const [state, setState] = useState(() => parseHash(location.hash));
  useEffect(() => {
    const read = () => setState(parseHash(location.hash));
    addEventListener('popstate', read);
    addEventListener('hashchange', read);
    return () => {
      removeEventListener('popstate', read);
      removeEventListener('hashchange', read);
    };
  }, []);
  const update: Update = (change, how = 'push') => {
    // From the address, not from this closure: two updates may come between two renderings.
    const next = { ...parseHash(location.hash), ...change };
    const hash = formatHash(next);
    if (hash === location.hash) return;
    if (how === 'push') history.pushState(null, '', hash);
    else history.replaceState(null, '', hash);
    setState(next);
  };
  return [state, update];
}

function useDarkSystem(): boolean {
  const query = matchMedia('(prefers-color-scheme: dark)');
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const read = () => setDark(query.matches);
    query.addEventListener('change', read);
    return () => query.removeEventListener('change', read);
  }, []);
  return dark;
}

export interface Model {
  profile: Profile;
  state: State;
  update: Update;
  theme: Theme;
  device: number;
  report: DeviceReport | undefined;
  curve: Curve;
  marks: Mark[];
  // The instant that the report explains, and what it says of it.
  explained: { tick: Tick; breakdown: Breakdown | undefined; refusal: boolean };
  tick: Tick; // selected
  shownTick: Tick; // whose blocks are shown: another one where a long trace has not kept them all
  hidden: ReadonlySet<number>;
  selection: Selection;
  rows: Uint32Array; // largest first
  totals: Totals;
  window: Window;
}

export function useModel(profile: Profile, state: State, update: Update): Model {
  const systemDark = useDarkSystem();
  const dark = state.theme === 'dark' || (state.theme === 'system' && systemDark);
  const theme = dark ? kDark : kLight;
  useEffect(() => {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  }, [dark]);

  const device = profile.devices.includes(state.device)
    ? state.device
    : (profile.report.devices[0]?.device ?? profile.devices[0] ?? 0);
  const report = profile.report.devices.find((candidate) => candidate.device === device);
  const curve = profile.curves.get(device) ?? emptyCurve();
  const marks = useMemo(() => profile.marks.filter((mark) => mark.device === device), [profile, device]);
  const explained = useMemo(() => {
    const refusal = report?.at_refusal !== undefined;
    const mark = marks.find((candidate) => candidate.kind === (refusal ? 'out_of_memory' : 'peak'));
    return { tick: mark?.tick ?? 0, breakdown: refusal ? report?.at_refusal : report?.at_peak, refusal };
  }, [report, marks]);

  const tick = state.tick < 0 ? explained.tick : Math.min(state.tick, Math.max(0, profile.ticks - 1));
  const shownTick = nearestKeyframe(profile, tick);
  const hiddenKeys = state.hidden.join(' ');
  const hidden = useMemo(
    () =>
      new Set(
        state.hidden
          .map((key) => profile.classes.findIndex((known) => known.key === key))
          .filter((at) => at >= 0),
      ),
    [profile, hiddenKeys],
  );
  const from = state.from < 0 ? shownTick : state.from;
  const selection = useMemo<Selection>(
    () => ({ device, mode: state.mode, from, to: shownTick }),
    [device, state.mode, from, shownTick],
  );
  const rows = useMemo(() => selectBlocks(profile, selection, hidden), [profile, selection, hidden]);
  const totals = useMemo(() => totalsOf(profile, rows), [profile, rows]);
  const window = useMemo(() => {
    const whole = wholeWindow(curve, state.axis, profile.ticks);
    if (state.window === undefined) return whole;
    const [first, last] = state.window;
    const begin = axisValue({ curve, axis: state.axis }, first);
    const end = axisValue({ curve, axis: state.axis }, last);
    return end > begin ? { from: begin, to: end } : whole;
  }, [curve, state.axis, state.window?.[0], state.window?.[1], profile]);
  return {
    profile,
    state,
    update,
    theme,
    device,
    report,
    curve,
    marks,
    explained,
    tick,
    shownTick,
    hidden,
    selection,
    rows,
    totals,
    window,
  };
}

function emptyCurve(): Curve {
  const none = new Float64Array();
  const ticks = new Uint32Array();
  return {
    length: 0,
    tick: ticks,
    time: none,
    step: ticks,
    phase: new Uint8Array(),
    highest_tick: ticks,
    highest: none,
    lowest: none,
    reserved: none,
    used: none,
    bands: new Map(),
  };
}
