// Draw calls on a context that only writes them down.
import { describe, expect, it } from 'vitest';
import { selectBlocks } from '../../src/data/live.ts';
import type { Profile } from '../../src/data/profile.ts';
import { searchTree } from '../../src/data/search.ts';
import { blockBeside, pinsOf, segmentsAt } from '../../src/data/segments.ts';
import { buildTree } from '../../src/data/tree.ts';
import { boxAt, drawFlame, heightOf, layout } from '../../src/draw/flame.ts';
import { drawMap } from '../../src/draw/map.ts';
import { SvgContext } from '../../src/draw/svg.ts';
import { type Context, fitText } from '../../src/draw/text.ts';
import { classColor, kDark, kLight, textOn } from '../../src/draw/theme.ts';
import { drawTimeline } from '../../src/draw/timeline.ts';
import { gridLines, roundStep } from '../../src/draw/timeline_axes.ts';
import { scaleOf, type TimelineScene, yOf } from '../../src/draw/timeline_scale.ts';
import { curveFromValues, profileFromText } from './fixture.ts';

interface Recorder {
  context: Context;
  calls: string[];
}

// Every character is 7 wide.
function recorder(): Recorder {
  const calls: string[] = [];
  const state: Record<string, unknown> = { font: '', fillStyle: '', globalAlpha: 1 };
  const context = new Proxy(state, {
    get(target, name: string) {
      if (name === 'measureText') return (text: string) => ({ width: 7 * text.length });
      if (name in target) return target[name];
      return (...values: unknown[]) => {
        const shown = values.map((value) =>
          typeof value === 'number' ? Math.round(value * 10) / 10 : value,
        );
        calls.push(`${name}(${shown.join(', ')})${name === 'fillRect' ? ` ${target.fillStyle}` : ''}`);
      };
    },
    set(target, name: string, value) {
      target[name] = value;
      return true;
    },
  });
  return { context: context as unknown as Context, calls };
}

const kRun = `
  weight      600  0-  fc.weight  main > build
  activation  300  1-  [fc]       main > forward
  activation  99   1-  [act]      main > forward
  temporary   1    1-  -          main > other
`;

function treeOf(profile: Profile) {
  const { groups } = selectBlocks(profile, { device: 0, mode: 'alive', from: 0, to: 9 }, new Set());
  return buildTree(profile, groups, 'stack', false);
}

describe('the flame graph', () => {
  const profile = profileFromText(kRun);
  const tree = treeOf(profile);
  const scene = (zoom: number, query: string) => ({
    tree,
    boxes: layout(tree, zoom, 1000),
    zoom,
    matches: searchTree(tree, query),
    hovered: undefined,
    focused: -1,
    classes: profile.classes,
    theme: kLight,
    width: 1000,
    height: 100,
    flipped: false,
    label: (node: number) => tree.label[node],
  });
  it('places boxes by bytes and merges what is too narrow', () => {
    const boxes = layout(tree, 0, 1000);
    expect(
      boxes.map(
        (box) =>
          `${box.depth}: ${box.node < 0 ? `${box.merged} merged` : tree.label[box.node]} ${box.x}+${box.width}`,
      ),
    ).toEqual([
      '0: all 0+1000',
      '1: main 0+1000',
      '2: build 0+600',
      '3: fc.weight 0+600',
      '2: forward 600+399',
      '3: fc 600+300',
      '3: act 900+99',
      '2: 1 merged 999+1',
    ]);
    expect(heightOf(boxes)).toBe(80);
    expect(boxAt(boxes, 650, 3)?.node).toBe(5);
    expect(boxAt(boxes, 650, 9)).toBeUndefined();
  });
  it('zooms, with what is above over the whole width', () => {
    const forward = tree.label.indexOf('forward');
    const boxes = layout(tree, forward, 1000);
    expect(boxes.map((box) => [box.depth, Math.round(box.width)])).toEqual([
      [0, 1000],
      [1, 1000],
      [2, 1000],
      [3, 752],
      [3, 248],
    ]);
  });
  it('draws colours by class, shares of classes in mixed boxes, names and sizes', () => {
    const { context, calls } = recorder();
    drawFlame(context, scene(0, ''));
    expect(calls).toMatchSnapshot();
  });
  it('dims what does not match', () => {
    const { context, calls } = recorder();
    drawFlame(context, scene(0, 'forward'));
    expect(
      calls.filter((call) => call.startsWith('fillRect') && call.endsWith(kLight.classes.weight)),
    ).toEqual([]);
    expect(calls.filter((call) => call.endsWith(kLight.classes.activation)).length).toBe(3);
  });
  it('draws at most as many boxes as pixels have room for', () => {
    const many = Array.from({ length: 3000 }, (_, i) => `  weight  100  0-  w${i}  main`).join('\n');
    const boxes = layout(treeOf(profileFromText(many)), 0, 1000);
    expect(boxes.length).toBe(3);
    expect(boxes[2]).toMatchObject({ node: -1, merged: 3000, bytes: 300_000 });
    expect(boxes[2].width).toBeCloseTo(1000);
  });
});

describe('the timeline', () => {
  const profile = profileFromText(kRun);
  const values = Array.from({ length: 1000 }, (_, i) => (i === 700 ? 1e9 : 1e6 * (i % 50)));
  const curve = curveFromValues(
    values,
    values.map((_, i) => Math.floor(i / 500)),
  );
  const scene: TimelineScene = {
    profile: { ...profile, marks: [{ device: 0, kind: 'peak', tick: 700 }] },
    curve,
    device: 0,
    capacity: 2e9,
    axis: 'events',
    window: { from: 0, to: 1000 },
    hidden: new Set(),
    selected: 700,
    range: undefined,
    hovered: -1,
    theme: kDark,
    width: 480,
    height: 264,
  };
  it('draws the peak though a column holds many events', () => {
    const { context, calls } = recorder();
    drawTimeline(context, scene);
    const peak = yOf(scaleOf(scene), 1e9);
    expect(
      calls.some((call) => call.startsWith('lineTo(') && call.endsWith(`, ${Math.round(peak * 10) / 10})`)),
    ).toBe(true);
    expect(calls.some((call) => call.startsWith('fillText(peak'))).toBe(true);
    expect(calls.some((call) => call.startsWith('fillText(1.86 GiB on the device'))).toBe(true);
    expect(calls.filter((call) => call.startsWith('fillText(step '))).toHaveLength(2);
  });
  it('leaves room for a far capacity in words only', () => {
    const far = scaleOf({ ...scene, capacity: 1e12 });
    expect(far.capacityShown).toBe(false);
    expect(far.highest).toBeCloseTo(1.5e9 * 1.06);
  });
  it('draws nothing of an empty curve but the frame', () => {
    const { context, calls } = recorder();
    drawTimeline(context, { ...scene, curve: curveFromValues([]), capacity: 0 });
    expect(calls.some((call) => call.startsWith('fill('))).toBe(false);
  });
  it('counts events and time in round numbers along the bottom', () => {
    const ticks = (change: Partial<TimelineScene>) => {
      const { context, calls } = recorder();
      drawTimeline(context, { ...scene, ...change });
      const bottom = Math.round((scaleOf(scene).bottom + 12) * 10) / 10;
      return calls
        .filter((call) => call.startsWith('fillText(') && call.endsWith(`, ${bottom})`))
        .map((call) => call.slice('fillText('.length).split(', ')[0]);
    };
    expect(ticks({})).toEqual(['event', '0', '500', '1,000']);
    expect(ticks({ window: { from: 480, to: 520 } })).toEqual(['event', '480', '500', '520']);
    expect(ticks({ axis: 'time', window: { from: 0, to: 999_000 } })).toEqual(['µs', '0', '500']);
    expect(roundStep(0.3, true)).toBe(1);
    expect(roundStep(21, true)).toBe(50);
  });
  it('has round grid lines', () => {
    expect(gridLines(24 * 1024 ** 3, 5).map((bytes) => bytes / 1024 ** 3)).toEqual([5, 10, 15, 20]);
    expect(gridLines(700 * 1024 ** 2, 5).map((bytes) => bytes / 1024 ** 2)).toEqual([200, 400, 600]);
  });
});

describe('the map of segments', () => {
  it('shows blocks and holes in order', () => {
    const profile = profileFromText(kRun);
    profile.segments = {
      length: 2,
      device: Uint8Array.of(0, 0),
      caching: Uint8Array.of(1, 0),
      address: Float64Array.of(4096, 1 << 20),
      bytes: Float64Array.of(8192, 4096),
      allocated: Uint32Array.of(0, 5),
      freed: Uint32Array.of(0xffffffff, 8),
      caller: Uint32Array.of(0, 0),
    };
    const maps = segmentsAt(profile, 0, 9);
    expect(maps).toHaveLength(1);
    expect(maps[0].live).toBe(1024 + 512 * 3);
    expect(maps[0].pieces.map((piece) => [piece.offset, piece.bytes, piece.block])).toEqual([
      [0, 1024, 0],
      [1024, 512, 1],
      [1536, 512, 2],
      [2048, 512, 3],
      [2560, 5632, -1],
    ]);
    expect(segmentsAt(profile, 0, 6)).toHaveLength(2);
    expect(blockBeside(maps, -1, 'ArrowDown')).toBe(0);
    expect(blockBeside(maps, 0, 'ArrowRight')).toBe(1);
    expect(blockBeside(maps, 3, 'ArrowRight')).toBe(3);
    expect(blockBeside(maps, 2, 'ArrowLeft')).toBe(1);
    expect(blockBeside(maps, 2, 'ArrowDown')).toBe(0);
    expect(blockBeside([], 2, 'ArrowUp')).toBe(-1);
    const { context, calls } = recorder();
    drawMap(context, {
      profile,
      maps,
      theme: kLight,
      width: 800,
      height: 40,
      selected: 1,
      hidden: new Set(),
      name: () => 'n',
      note: (map) => `pinned by ${pinsOf(profile, map).length}`,
      found: (block) => block === 1,
    });
    expect(calls.filter((call) => call.startsWith('strokeRect'))).toHaveLength(1);
    expect(calls.some((call) => call.startsWith('fillText(pinned by 4,'))).toBe(true);
    expect(calls.filter((call) => call.endsWith(kLight.dimmed))).toHaveLength(3);
  });
});

describe('a drawing as SVG', () => {
  it('holds the same boxes, and names as text', () => {
    const profile = profileFromText(kRun.replace('fc.weight', '<script>alert("1")&'));
    const tree = treeOf(profile);
    const context = new SvgContext((_font, text) => ({ width: 7 * text.length }) as TextMetrics);
    drawFlame(context, {
      tree,
      boxes: layout(tree, 0, 1000),
      zoom: 0,
      matches: undefined,
      hovered: undefined,
      focused: -1,
      classes: profile.classes,
      theme: kLight,
      width: 1000,
      height: 100,
      flipped: false,
      label: (node) => tree.label[node],
    });
    const svg = context.finish(1000, 100, 'a < b');
    expect(svg).not.toContain('<script');
    expect(svg).toContain('&lt;script&gt;alert(&quot;1&quot;)&amp;');
    expect(svg).toContain('<title>a &lt; b</title>');
    expect(svg.match(/<rect [^>]*fill="#0072B2"/g)).toHaveLength(4); // two boxes, two strips of mixed ones
  });
});

describe('text', () => {
  it('keeps the end of a path and the beginning of a sentence', () => {
    const { context } = recorder();
    expect(fitText(context, 'short', 100)).toBe('short');
    expect(fitText(context, 'transformer.h.11.mlp.act', 105)).toBe('tran…11.mlp.act');
    expect(fitText(context, 'gradient of something', 105)).toBe('gradient …thing');
    expect(fitText(context, 'anything', 10)).toBe('');
  });
  it('can be read on every colour of a class', () => {
    for (const theme of [kLight, kDark]) {
      for (const key of Object.keys(theme.classes)) {
        const ratio = contrast(classColor(theme, key), textOn(classColor(theme, key)));
        expect(ratio, key).toBeGreaterThan(4.4);
      }
    }
  });
});

function luminance(color: string): number {
  const channel = (at: number) => {
    const value = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
