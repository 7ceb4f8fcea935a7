// Profiles from text, so that a test shows what it is about:
//
//   class       bytes  from-to  name            stack
//   weight      100    0-       fc.weight       main > Linear.__init__
//
// "from-to" are ticks; no end: alive at the end. A name in brackets is a module's path: the block has no label.
import { type Curve, kNever, type Profile } from '../../src/data/profile.ts';

const kClasses = ['weight', 'gradient', 'activation', 'temporary', 'unknown', 'rounding'];

export function profileFromText(text: string): Profile {
  const strings = [''];
  const id = (word: string) => {
    if (!strings.includes(word)) strings.push(word);
    return strings.indexOf(word);
  };
  const lines = text
    .split('\n')
    .map((line) => line.trim().split(/\s{2,}/))
    .filter((cells) => cells.length >= 4);
  const count = lines.length;
  const u8 = () => new Uint8Array(count);
  const u32 = () => new Uint32Array(count);
  const f64 = () => new Float64Array(count);
  const stackParent = [0];
  const stackFrame = [0];
  const frames = [''];
  const stackId = (path: string): number => {
    let at = 0;
    for (const name of path.split(' > ')) {
      if (!frames.includes(name)) frames.push(name);
      const frame = frames.indexOf(name);
      let child = stackParent.findIndex((parent, i) => i > 0 && parent === at && stackFrame[i] === frame);
      if (child < 0) {
        child = stackParent.length;
        stackParent.push(at);
        stackFrame.push(frame);
      }
      at = child;
    }
    return at;
  };
  const profile: Profile = {
    report: {
      schema: 1,
      vramtrace_version: '',
      trace: { path: 'x.vtrace', bytes: 0, events: 0, duration_ns: 0, complete: true, being_written: false },
      program: {
        arguments: ['train.py'],
        pid: 1,
        rank: 0,
        world_size: 1,
        python_version: '',
        torch_version: '',
      },
      steps: { completed: 0, optimizers: [], batch: 0 },
      devices: [],
      notes: [],
    },
    forecasts: [],
    wholeRun: '',
    strings,
    classes: kClasses.map((key) => ({ key, words: `${key}s`, meaning: '' })),
    phases: ['load', 'forward', 'backward'],
    confidences: ['low', 'medium', 'high'],
    complete: true,
    keyframes: [],
    detail: [],
    ticks: 100,
    devices: [0],
    marks: [],
    damaged: false,
    name: 'x.vtrace',
    base: false,
    served: false,
    traceVersion: 0,
    kinds: {
      length: count,
      device: u8(),
      class: u8(),
      confidence: u8(),
      phase: u8(),
      stack: u32(),
      forward_stack: u32(),
      title: u32(),
      names: u32(),
      module: u32(),
      module_class: u32(),
      evidence: u32(),
      rule: u32(),
      operator: u32(),
      dtype: u32(),
      shape: u32(),
      bytes: f64(),
      block_bytes: f64(),
    },
    // A kind of its own for each block.
    blocks: {
      length: count,
      kind: u32().map((_, i) => i),
      allocated: u32(),
      freed: u32().fill(kNever),
      address: u32().map((_, i) => i),
    },
    addresses: f64(),
    steps: { length: 0, tick: new Uint32Array(), number: new Uint32Array() },
    stacks: { parent: new Uint32Array(), frame: new Uint32Array() },
    frames: {
      function: new Uint32Array(),
      place: new Uint32Array(),
      file: new Uint32Array(),
      plumbing: new Uint8Array(),
    },
    segments: {
      length: 0,
      device: new Uint8Array(),
      caching: new Uint8Array(),
      address: new Float64Array(),
      bytes: new Float64Array(),
      allocated: new Uint32Array(),
      freed: new Uint32Array(),
      caller: new Uint32Array(),
    },
    curves: new Map(),
  };
  const { blocks, kinds } = profile;
  let address = 4096;
  lines.forEach(([memoryClass, bytes, life, name, stack], i) => {
    kinds.class[i] = kClasses.indexOf(memoryClass);
    kinds.bytes[i] = Number(bytes);
    kinds.block_bytes[i] = Math.ceil(Number(bytes) / 512) * 512;
    profile.addresses[i] = address;
    address += kinds.block_bytes[i];
    const [from, to] = life.split('-');
    blocks.allocated[i] = Number(from);
    if (to !== '') blocks.freed[i] = Number(to);
    if (name.startsWith('[')) {
      kinds.module[i] = id(name.slice(1, -1));
      kinds.title[i] = kinds.module[i];
      kinds.module_class[i] = id('Module');
    } else if (name !== '-') {
      kinds.title[i] = id(name);
      kinds.names[i] = id(name);
    }
    if (stack !== undefined) kinds.stack[i] = stackId(stack);
  });
  profile.stacks = { parent: Uint32Array.from(stackParent), frame: Uint32Array.from(stackFrame) };
  profile.frames = {
    function: Uint32Array.from(frames, (name) => id(name.split('@')[0])),
    place: Uint32Array.from(frames, (name) => (name === '' ? 0 : id('train.py:1'))),
    file: Uint32Array.from(frames, () => id('train.py:1')),
    plumbing: Uint8Array.from(frames, (name) => (name.endsWith('@plumbing') ? 1 : 0)),
  };
  return profile;
}

// A curve of one bucket an event, from allocated bytes.
export function curveFromValues(values: number[], steps: number[] = values.map(() => 0)): Curve {
  const index = Uint32Array.from(values, (_, i) => i);
  return {
    length: values.length,
    tick: index,
    time: Float64Array.from(values, (_, i) => i * 1000),
    step: Uint32Array.from(steps),
    phase: new Uint8Array(values.length),
    highest_tick: index,
    highest: Float64Array.from(values),
    lowest: Float64Array.from(values),
    reserved: Float64Array.from(values, (value) => value * 1.5),
    used: new Float64Array(values.length).fill(-1),
    bands: new Map([[2, Float64Array.from(values)]]),
  };
}
