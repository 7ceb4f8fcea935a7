import { grouped, size } from '../data/format.ts';
import { type BlockIndex, blockName, kNever } from '../data/profile.ts';
import { stackOf } from '../data/tree.ts';
import type { Model } from './model.ts';
import { Swatch } from './timeline_view.tsx';

// One block: what it is, how sure that is and why, and where it was allocated.
export function BlockFacts({
  model,
  block,
  short = false,
}: {
  model: Model;
  block: BlockIndex;
  short?: boolean;
}) {
  const { profile } = model;
  const { blocks, strings, classes, confidences, phases } = profile;
  const memoryClass = blocks.class[block];
  const shape = strings[blocks.shape[block]];
  const module = strings[blocks.module[block]];
  const facts: [string, string][] = [
    [
      'evidence',
      `${strings[blocks.evidence[block]] || 'no rule decided'} (${confidences[blocks.confidence[block]]} confidence)`,
    ],
  ];
  if (shape !== '') facts.push(['tensor', `${shape} ${strings[blocks.dtype[block]]}`]);
  if (blocks.module_class[block] !== 0)
    facts.push(['module', `${module || 'root'} (${strings[blocks.module_class[block]]})`]);
  if (!short) {
    const names = strings[blocks.names[block]];
    if (names.includes(', ')) facts.push(['names', names]);
    if (blocks.operator[block] !== 0) facts.push(['autograd node', strings[blocks.operator[block]]]);
    facts.push([
      'made',
      `step ${blocks.step[block]}, ${phases[blocks.phase[block]]}, event ${grouped(blocks.allocated[block])}`,
    ]);
    facts.push([
      'freed',
      blocks.freed[block] === kNever ? 'alive at the end' : `event ${grouped(blocks.freed[block])}`,
    ]);
    facts.push([
      'block',
      `${grouped(blocks.block_bytes[block])} B at 0x${blocks.address[block].toString(16)}`,
    ]);
    facts.push(['rule', strings[blocks.rule[block]]]);
  }
  return (
    <div class="block-facts">
      {!short && (
        <>
          <strong class="wrap">{blockName(profile, block)}</strong>
          <div>
            <Swatch model={model} band={memoryClass} /> {classes[memoryClass].words},{' '}
            {size(blocks.bytes[block])} <span class="faint">{grouped(blocks.bytes[block])} B</span>
          </div>
        </>
      )}
      <dl>
        {facts.map(([name, text]) => (
          <>
            <dt key={name}>{name}</dt>
            <dd class="wrap">{text}</dd>
          </>
        ))}
      </dl>
    </div>
  );
}

export function stackText(model: Model, block: BlockIndex): string {
  return stackOf(model.profile, block, model.state.frames)
    .reverse()
    .map((step) => `${step.label}  ${step.detail}`)
    .join('\n');
}

export function Stack({ model, block }: { model: Model; block: BlockIndex }) {
  const steps = stackOf(model.profile, block, model.state.frames).reverse();
  if (steps.length === 0) return <p class="faint">No stack was recorded.</p>;
  return (
    <ol class="stack">
      {steps.map((step, i) => (
        <li key={`${i}`}>
          <span class="wrap">{step.label}</span> <span class="faint wrap">{step.detail}</span>
        </li>
      ))}
    </ol>
  );
}
