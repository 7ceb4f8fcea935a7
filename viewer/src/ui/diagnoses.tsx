// Why memory filled, and what would change it: the diagnoses of `vramtrace analyze`, in its words.
import { size } from '../data/format.ts';
import type { Diagnosis, Remedy } from '../data/report.ts';
import type { Model } from './model.ts';

export function Diagnoses({ model }: { model: Model }) {
  const found = model.profile.report.diagnoses?.find((row) => row.device === model.device);
  const shown = found?.diagnoses.filter((diagnosis) => diagnosis.shown) ?? [];
  if (found === undefined || shown.length === 0) return null;
  return (
    <section class="diagnoses">
      <h2>Diagnosis</h2>
      {shown.map((diagnosis) => (
        <OneDiagnosis key={diagnosis.id} diagnosis={diagnosis} />
      ))}
      <p>
        <strong class="amount">{size(found.rest)}</strong> the rest; together {size(found.used)} device used{' '}
        {found.at === 'refusal' ? 'when memory ran out' : 'at the peak'}
      </p>
    </section>
  );
}

function OneDiagnosis({ diagnosis }: { diagnosis: Diagnosis }) {
  const { id, title, confidence, sentence, numbers, missing, remedies, cannot } = diagnosis;
  return (
    <article>
      <h3>
        <span class="amount">{size(diagnosis.own_bytes)}</span>{' '}
        <span class="faint" title={`looks for ${diagnosis.signature}. Limits: ${diagnosis.limits}`}>
          {id}
        </span>{' '}
        {title}{' '}
        <span class="faint" title={diagnosis.confidence_rule}>
          {confidence} confidence
        </span>
      </h3>
      <p>{sentence}</p>
      <ul class="faint">
        {numbers.map((fact) => (
          <li key={fact.what}>
            {fact.what}: {fact.text}
          </li>
        ))}
        {missing.map((text) => (
          <li key={text}>not sure: {text}</li>
        ))}
      </ul>
      <ol>
        {remedies.map((remedy) => (
          <li key={remedy.change}>
            {remedy.change}
            <strong>{effect(remedy)}</strong>
          </li>
        ))}
        {cannot.map((text) => (
          <li key={text}>not: {text}</li>
        ))}
      </ol>
    </article>
  );
}

function effect(remedy: Remedy): string {
  if (remedy.used > 0)
    return `: then ${size(remedy.used)} used, ${size(remedy.used_low)} to ${size(remedy.used_high)}`;
  return remedy.saves_most > 0 ? `: at most ${size(remedy.saves_most)} less` : '';
}
