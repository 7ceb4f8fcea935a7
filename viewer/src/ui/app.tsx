import { useEffect, useRef, useState } from 'preact/hooks';
import { eventBeside } from '../data/curve.ts';
import { grouped, share, size } from '../data/format.ts';
import type { Profile } from '../data/profile.ts';
import { parseHash, type View } from '../data/url_state.ts';
import { BlocksView } from './blocks_view.tsx';
import { DiffView } from './diff_view.tsx';
import { Explanation, place } from './explanation.tsx';
import { FlameView } from './flame_view.tsx';
import { Help } from './help.tsx';
import { isTyping } from './keys.ts';
import { MapView } from './map_view.tsx';
import { type Model, useModel, useUrlState } from './model.ts';
import { ModulesView } from './modules_view.tsx';
import { RanksView } from './ranks_view.tsx';
import { TimelineView, zoomTimeline } from './timeline_view.tsx';
import { WhatIfView } from './what_if_view.tsx';

const kViews: [View, string][] = [
  ['flame', 'Flame graph'],
  ['blocks', 'Blocks'],
  ['modules', 'Modules'],
  ['map', 'Segments'],
];

// Views of several traces stand only where there are several.
function viewsOf(profiles: Profile[], profile: Profile, base: Profile | undefined): [View, string][] {
  const views = [...kViews];
  const ranks = profiles.filter((profile) => !profile.base);
  if (ranks.length > 1) views.push(['ranks', `Ranks (${ranks.length})`]);
  if (base !== undefined) views.push(['diff', 'Difference']);
  if (profile.forecasts.length > 0) views.push(['whatif', 'What if']);
  return views;
}

export function App({ profiles }: { profiles: Profile[] }) {
  const [state, update] = useUrlState();
  const profile = profiles[state.trace] ?? profiles[0];
  const model = useModel(profile, state, update);
  const base = profiles.find((other) => other.base) ?? profiles.find((other) => other !== profile);
  const views = viewsOf(profiles, profile, base);
  const view = views.some(([key]) => key === state.view) ? state.view : 'flame';
  const [help, setHelp] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  useKeys(model, views, search, help, setHelp);
  return (
    <>
      <Header model={model} profiles={profiles} openHelp={() => setHelp(true)} />
      <Banner model={model} />
      <TimelineView model={model} />
      <main>
        <div class="views">
          <div class="bar tabs">
            <span role="tablist" aria-label="Views">
              {views.map(([key, words]) => (
                <button
                  type="button"
                  key={key}
                  role="tab"
                  aria-selected={view === key}
                  onClick={() => update({ view: key })}
                >
                  {words}
                </button>
              ))}
            </span>
            <span class="grow" />
            <input
              ref={search}
              type="search"
              placeholder="Search: name, module, file…"
              aria-label="Search"
              value={state.search}
              onInput={(event) => update({ search: event.currentTarget.value }, 'replace')}
            />
          </div>
          {view === 'flame' && <FlameView model={model} />}
          {view === 'blocks' && <BlocksView model={model} />}
          {view === 'modules' && <ModulesView model={model} />}
          {view === 'map' && <MapView model={model} />}
          {view === 'ranks' && <RanksView model={model} profiles={profiles} />}
          {view === 'diff' && base !== undefined && <DiffView model={model} base={base} />}
          {view === 'whatif' && <WhatIfView model={model} />}
        </div>
        <Explanation model={model} />
      </main>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

function Header(props: { model: Model; profiles: Profile[]; openHelp: () => void }) {
  const { model, profiles, openHelp } = props;
  const { profile, report, state, update } = model;
  const { program, steps } = profile.report;
  const script =
    program.arguments.find((argument) => argument.endsWith('.py')) ?? program.arguments[0] ?? 'program';
  const peak = report?.peak_allocated;
  return (
    <header>
      <div class="title">
        <h1 title={program.arguments.join(' ')}>{script.slice(script.lastIndexOf('/') + 1)}</h1>
        <span class="faint">
          {report?.name}
          {report?.simulated ? ' (simulated)' : ''}
          {program.torch_version !== '' && `, PyTorch ${program.torch_version}`}
          {steps.batch > 0 && `, batch ${steps.batch}`}
          {steps.completed > 0 && `, ${grouped(steps.completed)} steps`}
          {program.world_size > 1 && `, rank ${program.rank} of ${program.world_size}`}
        </span>
      </div>
      {peak !== undefined && (
        <div class="headline">
          <strong>{size(peak.bytes)}</strong>{' '}
          <span class="faint">
            peak allocated{report && report.total_bytes > 0 ? ` of ${size(report.total_bytes)}` : ''}
          </span>
          {peak.moment && <div class="faint">{place(peak.moment)}</div>}
        </div>
      )}
      <span class="grow" />
      {model.waiting && (
        <span class="faint" role="status">
          asking the server…
        </span>
      )}
      {profiles.length > 1 && (
        <select
          aria-label="Trace"
          value={state.trace}
          onChange={(event) =>
            update({ trace: Number(event.currentTarget.value), device: -1, tick: -1, zoom: [], block: -1 })
          }
        >
          {profiles.map((other, i) => (
            <option key={`${i}`} value={i}>
              {other.name}
              {other.base ? ' (compared with)' : ''}
            </option>
          ))}
        </select>
      )}
      {profile.devices.length > 1 && (
        <select
          aria-label="GPU"
          value={model.device}
          onChange={(event) =>
            update({
              device: Number(event.currentTarget.value),
              tick: -1,
              zoom: [],
              block: -1,
              window: undefined,
            })
          }
        >
          {profile.devices.map((device) => (
            <option key={device} value={device}>
              GPU {device}
            </option>
          ))}
        </select>
      )}
      <button type="button" onClick={() => update({ tick: -1, mode: 'alive', from: -1 })}>
        {model.explained.refusal ? 'out of memory' : 'peak'}
      </button>
      <button
        type="button"
        aria-label="Light or dark"
        onClick={() => update({ theme: model.theme.dark ? 'light' : 'dark' }, 'replace')}
      >
        {state.theme === 'dark' || model.theme.dark ? '☀' : '☾'}
      </button>
      <button type="button" aria-label="Keys and help" onClick={openHelp}>
        ?
      </button>
    </header>
  );
}

// Below this part of the bytes that a rule could not be sure of, the classes are worth no warning.
const kUnsurePart = 0.25;

// What the reader must know before believing the numbers.
function Banner({ model }: { model: Model }) {
  const { profile, explained } = model;
  const { notes, trace } = profile.report;
  const serious = notes.filter((note) => note.severity !== 'information').map((note) => note.text);
  const others = notes.filter((note) => note.severity === 'information').map((note) => note.text);
  if (trace.being_written)
    others.unshift('The program is still running: this is what it has recorded so far.');
  const classes = explained.breakdown?.classes ?? [];
  const unsure = classes.reduce((sum, row) => sum + row.unsure_bytes, 0);
  const all = classes.reduce((sum, row) => sum + row.bytes, 0);
  if (all > 0 && unsure >= kUnsurePart * all) {
    others.push(
      `${share(unsure, all)} of the allocated bytes have a class that was inferred, not recorded. Sizes are exact; hover a box for the evidence of its class.`,
    );
  }
  return (
    <>
      {serious.length > 0 && (
        <div class="banner" role="alert">
          <strong>{profile.damaged ? 'The trace is damaged.' : 'The trace is not whole.'}</strong>
          {serious.map((text, i) => (
            <div key={`${i}`}>{text}</div>
          ))}
        </div>
      )}
      {others.length > 0 && (
        <div class="notes" role="note">
          {others.map((text, i) => (
            <div key={`${i}`}>{text}</div>
          ))}
        </div>
      )}
    </>
  );
}

function useKeys(
  model: Model,
  views: [View, string][],
  search: { current: HTMLInputElement | null },
  help: boolean,
  setHelp: (open: boolean) => void,
): void {
  const { state, update, curve, drawn, profile } = model;
  useEffect(() => {
    // From the address, not from this rendering: keys that repeat come faster than frames.
    const selectedNow = () => {
      const now = parseHash(location.hash);
      return { now, at: now.tick < 0 ? model.explained.tick : now.tick };
    };
    const move = (by: number) => {
      const { now, at } = selectedNow();
      const [first, last] = now.window ?? [0, -1];
      const inside = first <= at && at < last ? drawn : curve;
      const tick = eventBeside(inside, at, by) ?? eventBeside(curve, at, by) ?? at;
      // In a range its end moves.
      if (now.mode === 'alive') update({ tick, from: -1 }, 'replace');
      else update({ tick: Math.max(tick, now.from) }, 'replace');
    };
    const actions: Record<string, () => void> = {
      '?': () => setHelp(!help),
      '/': () => search.current?.focus(),
      p: () => update({ tick: -1, mode: 'alive', from: -1 }),
      r: () => {
        const { now, at } = selectedNow();
        const begin = now.mode === 'alive';
        update(begin ? { mode: 'kept', from: at, tick: at, block: -1 } : { mode: 'alive', from: -1 });
      },
      i: () => update({ inverted: !state.inverted, zoom: [] }),
      s: () => update({ by: 'stack', zoom: [], view: 'flame' }),
      m: () => update({ by: 'module', zoom: [], view: 'flame' }),
      c: () => update({ by: 'class', zoom: [], view: 'flame' }),
      x: () => update({ axis: state.axis === 'events' ? 'time' : 'events' }, 'replace'),
      t: () => update({ theme: model.theme.dark ? 'light' : 'dark' }, 'replace'),
      '+': () => zoomTimeline(model, 0.6, model.tick),
      '=': () => zoomTimeline(model, 0.6, model.tick),
      '-': () => zoomTimeline(model, 1 / 0.6, model.tick),
      '0': () => update({ window: undefined }, 'replace'),
    };
    views.forEach(([view], i) => {
      actions[String(i + 1)] = () => update({ view });
    });
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.ctrlKey && !event.altKey) {
        if (help) setHelp(false);
        else if (state.search !== '') update({ search: '' }, 'replace');
        else if (state.block >= 0) update({ block: -1 }, 'replace');
        (document.activeElement as HTMLElement | null)?.blur();
        return;
      }
      if (isTyping(event)) return;
      if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
        const by = (event.key === 'ArrowLeft' ? -1 : 1) * (event.shiftKey ? 100 : 1);
        move(by);
      } else if (Object.hasOwn(actions, event.key)) actions[event.key]();
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [model, help, profile]);
}
