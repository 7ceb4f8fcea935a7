// The peak explained, as `vramtrace analyze` does: same numbers, same words.
import { grouped, share, size } from '../data/format.ts';
import type { Breakdown, DeviceReport, Moment, Term } from '../data/report.ts';
import { priceWords } from '../data/what_if.ts';
import { classColor } from '../draw/theme.ts';
import { BlockFacts, Stack, stackText } from './block_facts.tsx';
import { Diagnoses } from './diagnoses.tsx';
import type { Model } from './model.ts';

// "step 1, backward, h.0.mlp (GPT2MLP), LogSoftmaxBackward0"
export function place(moment: Moment): string {
  const module = moment.has_module
    ? moment.module_path === ''
      ? moment.module_class
      : `${moment.module_path} (${moment.module_class})`
    : '';
  return [`step ${moment.step}`, moment.phase, module, moment.operator]
    .filter((part) => part !== '')
    .join(', ');
}

export function Explanation({ model }: { model: Model }) {
  const { report, explained, state } = model;
  if (report === undefined) return <p>Nothing was allocated on a device.</p>;
  return (
    <aside class="explanation" aria-label="Explanation" tabIndex={0}>
      {state.block >= 0 && state.block < model.profile.blocks.length && <SelectedBlock model={model} />}
      {report.out_of_memory !== undefined && (
        <section class="refusal">
          <h2>{report.out_of_memory.summary}</h2>
          <dl>
            {report.out_of_memory.arithmetic.map((fact) => (
              <>
                <dt key={fact.what}>{fact.what}</dt>
                <dd>{fact.text}</dd>
              </>
            ))}
          </dl>
        </section>
      )}
      <SelectedInstant model={model} />
      {explained.breakdown !== undefined && <Filled model={model} breakdown={explained.breakdown} />}
      <Diagnoses model={model} />
      <Advice model={model} />
      <Peaks report={report} />
      <Steps model={model} report={report} />
    </aside>
  );
}

function SelectedBlock({ model }: { model: Model }) {
  const block = model.state.block;
  return (
    <section class="selected-block">
      <div class="bar">
        <h2>Selected block</h2>
        <span class="grow" />
        <button type="button" onClick={() => navigator.clipboard?.writeText(stackText(model, block))}>
          copy stack
        </button>
        <button type="button" aria-label="Close" onClick={() => model.update({ block: -1 }, 'replace')}>
          ✕
        </button>
      </div>
      <BlockFacts model={model} block={block} />
      <Stack model={model} kind={model.profile.blocks.kind[block]} />
    </section>
  );
}

// Only where it is another instant than the report's own.
function SelectedInstant({ model }: { model: Model }) {
  const { explained, totals, profile, theme, shownTick, tick, state } = model;
  if (state.mode === 'alive' && shownTick === explained.tick && model.hidden.size === 0) return null;
  const rows = [...totals.byClass.entries()].filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]);
  return (
    <section>
      <h2>{state.mode === 'alive' ? `Alive at event ${grouped(shownTick)}` : 'The selected range'}</h2>
      {shownTick !== tick && (
        <p class="faint">
          This trace is too long for all of its blocks to be in the page: shown is the nearest instant that is
          kept. For every instant: <code>vramtrace view --serve {profile.name}</code>
        </p>
      )}
      {model.partial && (
        <p class="faint">
          This trace is too long for all of its blocks to be in the page: those of this range that live only
          between the instants that are kept are missing. For all:{' '}
          <code>vramtrace view --serve {profile.name}</code>
        </p>
      )}
      <ClassBar
        parts={rows.map(([band, bytes]) => ({ key: profile.classes[band].key, bytes }))}
        whole={totals.blockBytes}
        color={(key) => classColor(theme, key)}
      />
      <table class="facts wide">
        <tbody>
          {rows.map(([band, bytes]) => (
            <tr key={band}>
              <td>
                <span class="swatch" style={{ background: classColor(theme, profile.classes[band].key) }} />{' '}
                {profile.classes[band].words}
              </td>
              <td class="number">{size(bytes)}</td>
              <td class="number faint">{share(bytes, totals.blockBytes)}</td>
            </tr>
          ))}
          <tr class="sum">
            <td>together</td>
            <td class="number">{size(totals.blockBytes)}</td>
            <td class="number faint">{grouped(model.selected.groups.blocks)} blocks</td>
          </tr>
        </tbody>
      </table>
    </section>
  );
}

function ClassBar(props: {
  parts: { key: string; bytes: number }[];
  whole: number;
  color: (key: string) => string;
}) {
  return (
    <div class="class-bar" aria-hidden="true">
      {props.parts.map((part) => (
        <span
          key={part.key}
          style={{ width: `${(100 * part.bytes) / props.whole}%`, background: props.color(part.key) }}
        />
      ))}
    </div>
  );
}

// Classes first, largest first; the terms around them keep their order.
export function orderTerms(breakdown: Breakdown): Term[] {
  const isClass = (term: Term) => breakdown.classes.some((row) => row.key === term.key);
  const terms = breakdown.identity.terms.filter((term) => term.bytes !== 0);
  return [
    ...terms.filter(isClass).sort((a, b) => b.bytes - a.bytes),
    ...terms.filter((term) => !isClass(term)),
  ];
}

function Filled({ model, breakdown }: { model: Model; breakdown: Breakdown }) {
  const { theme, explained } = model;
  const { identity } = breakdown;
  const terms = orderTerms(breakdown);
  const color = (term: Term) =>
    theme.classes[term.key] ??
    (term.key === 'cached_free' ? theme.dimmed : term.key === 'context' ? theme.faint : theme.merged);
  const unsure = new Map(breakdown.classes.map((row) => [row.key, row.unsure_bytes]));
  return (
    <section>
      <h2>
        {explained.refusal
          ? 'What filled it when memory ran out'
          : 'What filled it at the peak of allocated bytes'}
      </h2>
      <p class="where">
        {place(breakdown.moment)}
        {breakdown.moment.site !== '' && <div class="faint wrap">{breakdown.moment.site}</div>}
        {breakdown.moment.script !== '' && breakdown.moment.script !== breakdown.moment.site && (
          <div class="faint wrap">called by {breakdown.moment.script}</div>
        )}
      </p>
      <div class="class-bar" aria-hidden="true">
        {terms.map((term) => (
          <span
            key={term.key}
            style={{
              width: `${Math.max(0, (100 * term.bytes) / identity.device_used)}%`,
              background: color(term),
            }}
          />
        ))}
      </div>
      <table class="facts wide identity">
        <tbody>
          {terms.map((term) => (
            <tr key={term.key} title={term.detail}>
              <td>
                <span class="swatch" style={{ background: color(term) }} /> {term.words}
                {(unsure.get(term.key) ?? 0) > 0 && <span class="faint"> class inferred</span>}
              </td>
              <td class="number">{size(term.bytes)}</td>
              <td class="number faint bytes">{grouped(term.bytes)} B</td>
              <td class="number faint">{share(term.bytes, identity.device_used)}</td>
            </tr>
          ))}
          <tr class="sum" title={identity.device_used_basis}>
            <td>{identity.device_used_known ? '= device used' : '= recorded in all'}</td>
            <td class="number">{size(identity.device_used)}</td>
            <td class="number faint bytes">{grouped(identity.device_used)} B</td>
            <td />
          </tr>
        </tbody>
      </table>
    </section>
  );
}

// The first three of what `vramtrace forecast` lists, cheapest first.
function Advice({ model }: { model: Model }) {
  const forecast = model.profile.forecasts[0];
  if (forecast?.prediction === undefined) return <HowToForecast commands={model.profile.wholeRun} />;
  const { prediction, fitting, largest_batch } = forecast;
  return (
    <section class="advice">
      <h2>{prediction.verdict === 'fits' ? 'What leaves more room' : 'What would make it fit'}</h2>
      <ol>
        {largest_batch !== undefined && !forecast.largest_unlimited && (
          <li>
            batch {grouped(largest_batch)} is the largest that fits {forecast.card.name}
            {prediction.batch > 0 && <span class="faint"> (recorded: {grouped(prediction.batch)})</span>}
          </li>
        )}
        {fitting.slice(0, 3).map((candidate) => (
          <li key={candidate.prediction.techniques.join()}>
            <strong>{candidate.words.join(' + ')}</strong>: {size(candidate.prediction.used)} used,{' '}
            {size(candidate.saves)} less{priceWords(candidate)}
            <div class="faint wrap">{candidate.settings.map((setting) => setting.pytorch).join('; ')}</div>
          </li>
        ))}
      </ol>
      <button type="button" onClick={() => model.update({ view: 'whatif' })}>
        what if…
      </button>
    </section>
  );
}

// `analyze` says the same of a run that died before its second step.
function HowToForecast({ commands }: { commands: string }) {
  if (commands === '') return null;
  return (
    <section class="advice">
      <h2>What would make it fit</h2>
      <p>
        The run died before two optimizer steps were complete, so nothing here tells what the rest takes. Run
        it on a simulated card that is large enough, then ask:
      </p>
      <pre class="wrap">{commands.replace(/^ +/gm, '').trim()}</pre>
    </section>
  );
}

function Peaks({ report }: { report: DeviceReport }) {
  const peaks = [
    ['allocated', report.peak_allocated],
    ['reserved', report.peak_reserved],
    ['device used', report.peak_used],
  ] as const;
  return (
    <section>
      <h2>Peaks of the run</h2>
      <table class="facts wide">
        <tbody>
          {peaks.map(
            ([words, peak]) =>
              peak !== undefined &&
              peak.bytes > 0 && (
                <tr key={words}>
                  <td>{words}</td>
                  <td class="number">{size(peak.bytes)}</td>
                  <td class="faint">{peak.moment ? place(peak.moment) : ''}</td>
                </tr>
              ),
          )}
        </tbody>
      </table>
    </section>
  );
}

function Steps({ model, report }: { model: Model; report: DeviceReport }) {
  const peaks = report.step_peak_allocated;
  if (peaks.length < 2) return null;
  const most = Math.max(...peaks);
  const shown = peaks.slice(0, 200);
  return (
    <section>
      <h2>Peak of each step</h2>
      <div
        class="steps"
        role="img"
        aria-label={`Peak allocated of ${peaks.length} steps; the highest is ${size(most)}`}
      >
        {shown.map((bytes, step) => (
          <span
            key={`${step}`}
            title={`step ${step}: ${size(bytes)}`}
            style={{
              height: `${(100 * bytes) / most}%`,
              background: bytes === most ? model.theme.accent : model.theme.merged,
            }}
          />
        ))}
      </div>
    </section>
  );
}
