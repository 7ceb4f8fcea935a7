// State in, everything derived from it out; each step is computed anew only when what it reads changed.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { type Window, wholeWindow } from '../data/curve.ts';
import { emptyCurve, finerCurve, stretchToRefine } from '../data/finer.ts';
import {
  holdsAll,
  nearestKeyframe,
  type Selected,
  type Selection,
  selectBlocks,
  type Totals,
  totalsOf,
} from '../data/live.ts';
import type { BlockTable, Curve, Mark, Profile, Tick } from '../data/profile.ts';
import type { Breakdown, DeviceReport } from '../data/report.ts';
import { servedBlocks } from '../data/source.ts';
import { formatHash, parseHash, type State } from '../data/url_state.ts';
import { kDark, kLight, type Theme } from '../draw/theme.ts';
import { axisValue } from '../draw/timeline_scale.ts';

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
  curve: Curve; // of the whole run
  drawn: Curve; // the same, or of the window where that shows more
  marks: Mark[];
  explained: Explained;
  tick: Tick; // selected
  waiting: boolean; // for blocks from the server
  shownTick: Tick; // whose blocks are shown: another one where a long trace has not kept them all
  hidden: ReadonlySet<number>;
  selection: Selection;
  partial: boolean; // not all blocks of the selected range are in the page
  selected: Selected;
  totals: Totals;
  window: Window;
}

export interface Explained {
  tick: Tick;
  breakdown: Breakdown | undefined;
  refusal: boolean;
}

// The instant that the report explains: where memory ran out, else the peak.
export function explainedOf(profile: Profile, device: number): Explained {
  const report = profile.report.devices.find((candidate) => candidate.device === device);
  const refusal = report?.at_refusal !== undefined;
  const kind = refusal ? 'out_of_memory' : 'peak';
  const mark = profile.marks.find((candidate) => candidate.device === device && candidate.kind === kind);
  return { tick: mark?.tick ?? 0, breakdown: refusal ? report?.at_refusal : report?.at_peak, refusal };
}

// The profile with the blocks of a selection, where its server has more than the page. While they come, the
// last ones stay.
function useBlocks(profile: Profile, trace: number, selection: Selection): [Profile, boolean] {
  const ask = profile.served && !profile.complete;
  const [answer, setAnswer] = useState<{ to: Selection; of: Profile; blocks: BlockTable } | undefined>();
  useEffect(() => {
    if (!ask) return;
    let current = true;
    void servedBlocks(trace, selection).then((blocks) => {
      if (current) setAnswer({ to: selection, of: profile, blocks });
    });
    return () => {
      current = false;
    };
  }, [profile, trace, selection]);
  const known = ask && answer?.of === profile ? answer : undefined;
  const filled = useMemo(() => (known ? { ...profile, blocks: known.blocks } : profile), [profile, known]);
  return [filled, ask && known?.to !== selection];
}

// The curve as the window shows it: of a long run's short stretch every event, from the blocks that live in it.
// While they come from the server, what is known already stays.
function useDrawn(
  profile: Profile,
  trace: number,
  device: number,
  curve: Curve,
  window: State['window'],
): [Curve, boolean] {
  const stretch = useMemo(
    () => window && stretchToRefine(curve, window[0], window[1], profile.ticks),
    [curve, window?.[0], window?.[1], profile],
  );
  const here = useMemo(
    () =>
      stretch && holdsAll(profile, ...stretch)
        ? finerCurve(profile, profile.blocks, device, curve, ...stretch)
        : undefined,
    [profile, device, curve, stretch],
  );
  const ask = stretch !== undefined && here === undefined && profile.served;
  const [answer, setAnswer] = useState<{ to: [Tick, Tick]; of: Curve; curve: Curve } | undefined>();
  useEffect(() => {
    if (!ask) return;
    let current = true;
    const [from, to] = stretch;
    void servedBlocks(trace, { device, mode: 'seen', from, to }).then((blocks) => {
      if (current)
        setAnswer({
          to: stretch,
          of: curve,
          curve: finerCurve(profile, blocks, device, curve, from, to),
        });
    });
    return () => {
      current = false;
    };
  }, [ask, trace, device, curve, stretch]);
  if (here !== undefined) return [here, false];
  if (!ask) return [curve, false];
  const known = answer?.of === curve ? answer : undefined;
  const covers = known !== undefined && known.to[0] <= stretch[0] && stretch[1] <= known.to[1];
  return [covers ? known.curve : curve, known?.to !== stretch];
}

export function useModel(whole: Profile, state: State, update: Update): Model {
  const systemDark = useDarkSystem();
  const dark = state.theme === 'dark' || (state.theme === 'system' && systemDark);
  const theme = dark ? kDark : kLight;
  useEffect(() => {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  }, [dark]);

  const device = whole.devices.includes(state.device)
    ? state.device
    : (whole.report.devices[0]?.device ?? whole.devices[0] ?? 0);
  const report = whole.report.devices.find((candidate) => candidate.device === device);
  const curve = useMemo(() => whole.curves.get(device) ?? emptyCurve(), [whole, device]);
  const marks = useMemo(() => whole.marks.filter((mark) => mark.device === device), [whole, device]);
  const explained = useMemo(() => explainedOf(whole, device), [whole, device]);

  const tick = state.tick < 0 ? explained.tick : Math.min(state.tick, Math.max(0, whole.ticks - 1));
  const shownTick = whole.served ? tick : nearestKeyframe(whole, tick);
  const hiddenKeys = state.hidden.join(' ');
  const hidden = useMemo(
    () =>
      new Set(
        state.hidden
          .map((key) => whole.classes.findIndex((known) => known.key === key))
          .filter((at) => at >= 0),
      ),
    [whole, hiddenKeys],
  );
  const from = state.from < 0 ? shownTick : state.from;
  const selection = useMemo<Selection>(
    () => ({ device, mode: state.mode, from, to: shownTick }),
    [device, state.mode, from, shownTick],
  );
  const [profile, waitingForBlocks] = useBlocks(whole, state.trace, selection);
  const [drawn, waitingForCurve] = useDrawn(whole, state.trace, device, curve, state.window);
  const partial = state.mode !== 'alive' && !whole.served && !holdsAll(whole, from, shownTick);
  const selected = useMemo(() => selectBlocks(profile, selection, hidden), [profile, selection, hidden]);
  const totals = useMemo(() => totalsOf(profile, selected.groups), [profile, selected]);
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
    drawn,
    marks,
    explained,
    tick,
    waiting: waitingForBlocks || waitingForCurve,
    shownTick,
    hidden,
    selection,
    partial,
    selected,
    totals,
    window,
  };
}
