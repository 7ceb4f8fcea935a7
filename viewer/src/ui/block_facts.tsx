import { grouped, size } from '../data/format.ts';
import { type BlockIndex, blockAddress, blockName, type KindIndex, kNever, stepAt } from '../data/profile.ts';
import { stackOf } from '../data/tree.ts';
import type { Model } from './model.ts';
import { Swatch } from './timeline_view.tsx';

// One block: what it is, how sure that is and why, and where it was allocated.
export function BlockFacts({
  model,
  block,
  kind: given,
  short = false,
}: {
  model: Model;
  block: BlockIndex;
  kind?: KindIndex; // where no one block is meant
  short?: boolean;
}) {
  const { profile } = model;
  const { blocks, kinds, strings, classes, confidences, phases } = profile;
  const kind = given ?? blocks.kind[block];
  const memoryClass = kinds.class[kind];
  const shape = strings[kinds.shape[kind]];
  const module = strings[kinds.module[kind]];
  const facts: [string, string][] = [
    [
      'evidence',
      `${strings[kinds.evidence[kind]] || 'no rule decided'} (${confidences[kinds.confidence[kind]]} confidence)`,
    ],
  ];
  if (shape !== '') facts.push(['tensor', `${shape} ${strings[kinds.dtype[kind]]}`]);
  if (kinds.module_class[kind] !== 0)
    facts.push(['module', `${module || 'root'} (${strings[kinds.module_class[kind]]})`]);
  if (!short) {
    const names = strings[kinds.names[kind]];
    if (names.includes(', ')) facts.push(['names', names]);
    if (kinds.operator[kind] !== 0) facts.push(['autograd node', strings[kinds.operator[kind]]]);
    facts.push([
      'made',
      `step ${stepAt(profile, blocks.allocated[block])}, ${phases[kinds.phase[kind]]}, event ${grouped(blocks.allocated[block])}`,
    ]);
    facts.push([
      'freed',
      blocks.freed[block] === kNever ? 'alive at the end' : `event ${grouped(blocks.freed[block])}`,
    ]);
    facts.push([
      'block',
      `${grouped(kinds.block_bytes[kind])} B at 0x${blockAddress(profile, block).toString(16)}`,
    ]);
    facts.push(['rule', strings[kinds.rule[kind]]]);
  }
  return (
    <div class="block-facts">
      {!short && (
        <>
          <strong class="wrap">{blockName(profile, block)}</strong>
          <div>
            <Swatch model={model} band={memoryClass} /> {classes[memoryClass].words},{' '}
            {size(kinds.bytes[kind])} <span class="faint">{grouped(kinds.bytes[kind])} B</span>
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
  return stackOf(model.profile, model.profile.blocks.kind[block], model.state.frames)
    .reverse()
    .map((step) => `${step.label}  ${step.detail}`)
    .join('\n');
}

// Innermost frame first.
export function Stack({ model, kind, most }: { model: Model; kind: KindIndex; most?: number }) {
  const steps = stackOf(model.profile, kind, model.state.frames).reverse();
  if (steps.length === 0) return <p class="faint">No stack was recorded.</p>;
  const shown = steps.slice(0, most);
  return (
    <ol class="stack">
      {shown.map((step, i) => (
        <li key={`${i}`}>
          <span class="wrap">{step.label}</span> <span class="faint wrap">{step.detail}</span>
        </li>
      ))}
      {shown.length < steps.length && <li class="faint">… {steps.length - shown.length} more</li>}
    </ol>
  );
}
