import { useEffect, useRef, useState } from 'preact/hooks';
import { grouped, size } from '../data/format.ts';
import type { Profile } from '../data/profile.ts';
import type { View } from '../data/url_state.ts';
import { BlocksView } from './blocks_view.tsx';
import { Explanation, place } from './explanation.tsx';
import { FlameView } from './flame_view.tsx';
import { Help } from './help.tsx';
import { MapView } from './map_view.tsx';
import { type Model, useModel, useUrlState } from './model.ts';
import { ModulesView } from './modules_view.tsx';
import { TimelineView, zoomTimeline } from './timeline_view.tsx';

const kViews: [View, string][] = [
  ['flame', 'Flame graph'],
  ['blocks', 'Blocks'],
  ['modules', 'Modules'],
  ['map', 'Segments'],
];

export function App({ profile }: { profile: Profile }) {
  const [state, update] = useUrlState();
  const model = useModel(profile, state, update);
  const [help, setHelp] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  useKeys(model, search, help, setHelp);
  return (
    <>
      <Header model={model} openHelp={() => setHelp(true)} />
      <Banner profile={profile} />
      <TimelineView model={model} />
      <main>
        <div class="views">
          <div class="bar tabs">
            <span role="tablist" aria-label="Views">
              {kViews.map(([view, words]) => (
                <button
                  type="button"
                  key={view}
                  role="tab"
                  aria-selected={state.view === view}
                  onClick={() => update({ view })}
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
          {state.view === 'flame' && <FlameView model={model} />}
          {state.view === 'blocks' && <BlocksView model={model} />}
          {state.view === 'modules' && <ModulesView model={model} />}
          {state.view === 'map' && <MapView model={model} />}
        </div>
        <Explanation model={model} />
      </main>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

function Header({ model, openHelp }: { model: Model; openHelp: () => void }) {
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

// What the reader must know before believing the numbers.
function Banner({ profile }: { profile: Profile }) {
  const { notes } = profile.report;
  const serious = notes.filter((note) => note.severity !== 'information');
  const others = notes.filter((note) => note.severity === 'information');
  return (
    <>
      {serious.length > 0 && (
        <div class="banner" role="alert">
          <strong>{profile.damaged ? 'The trace is damaged.' : 'The trace is not whole.'}</strong>
          {serious.map((note, i) => (
            <div key={`${i}`}>{note.text}</div>
          ))}
        </div>
      )}
      {others.length > 0 && (
        <div class="notes">
          {others.map((note, i) => (
            <div key={`${i}`}>{note.text}</div>
          ))}
        </div>
      )}
    </>
  );
}

const kTyping = new Set(['INPUT', 'SELECT', 'TEXTAREA']);

function useKeys(
  model: Model,
  search: { current: HTMLInputElement | null },
  help: boolean,
  setHelp: (open: boolean) => void,
): void {
  const { state, update, curve, profile } = model;
  useEffect(() => {
    const move = (by: number) => {
      // To the next bucket's own peak: between two buckets there is nothing to see.
      let bucket = 0;
      while (bucket + 1 < curve.length && curve.tick[bucket + 1] <= model.tick) ++bucket;
      const next = Math.min(curve.length - 1, Math.max(0, bucket + by));
      update({ tick: curve.highest_tick[next], mode: 'alive', from: -1 }, 'replace');
    };
    const actions: Record<string, () => void> = {
      '?': () => setHelp(!help),
      '/': () => search.current?.focus(),
      p: () => update({ tick: -1, mode: 'alive', from: -1 }),
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
    kViews.forEach(([view], i) => {
      actions[String(i + 1)] = () => update({ view });
    });
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (event.key === 'Escape') {
        if (help) setHelp(false);
        else if (state.search !== '') update({ search: '' }, 'replace');
        else if (state.block >= 0) update({ block: -1 }, 'replace');
        (document.activeElement as HTMLElement | null)?.blur();
        return;
      }
      if (kTyping.has((event.target as HTMLElement).tagName)) return;
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
