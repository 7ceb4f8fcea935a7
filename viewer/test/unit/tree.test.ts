import { describe, expect, it } from 'vitest';
import { buildDiff } from '../../src/data/diff.ts';
import { groupsOf, selectBlocks } from '../../src/data/live.ts';
import type { Profile } from '../../src/data/profile.ts';
import { nextHit, searchTree } from '../../src/data/search.ts';
import { buildTree, findPath, foldedStacks, type Grouping, pathTo, printTree } from '../../src/data/tree.ts';
import { profileFromText } from './fixture.ts';

const kRun = `
  weight      100  0-  h.0.fc.weight  main > build
  weight      50   0-  h.1.fc.weight  main > build
  activation  300  1-  [h.0.fc]       main > forward > linear
  activation  200  1-  [h.1.fc]       main > forward > linear
  temporary   80   1-  -              main > forward > relu
`;

function print(text: string, by: Grouping, inverted = false): string[] {
  const profile = profileFromText(text);
  return printTree(tree(profile, by, inverted), String).split('\n');
}

function tree(profile: Profile, by: Grouping, inverted = false) {
  const { groups } = selectBlocks(profile, { device: 0, mode: 'alive', from: 0, to: 9 }, new Set());
  return buildTree(profile, groups, by, inverted);
}

describe('the tree of a live set', () => {
  it('by stack, largest first', () => {
    expect(print(kRun, 'stack')).toEqual([
      'all 730',
      '  main 730',
      '    forward 580',
      '      linear 500',
      '        h.0.fc 300',
      '        h.1.fc 200',
      '      relu 80',
      '        made in load 80',
      '    build 150',
      '      h.0.fc.weight 100',
      '      h.1.fc.weight 50',
    ]);
  });
  it('inverted: innermost first', () => {
    const lines = print(kRun, 'stack', true);
    expect(lines.slice(0, 5)).toEqual([
      'all 730',
      '  h.0.fc 300',
      '    linear 300',
      '      forward 300',
      '        main 300',
    ]);
  });
  it('by module: parameters are with the module that owns them', () => {
    expect(print(kRun, 'module')).toEqual([
      'all 730',
      '  model 650',
      '    h 650',
      '      0 400',
      '        fc 400',
      '          activations 300',
      '            h.0.fc 300',
      '          weights 100',
      '            h.0.fc.weight 100',
      '      1 250',
      '        fc 250',
      '          activations 200',
      '            h.1.fc 200',
      '          weights 50',
      '            h.1.fc.weight 50',
      '  outside of modules 80',
      '    load 80',
      '      relu 80',
      '        temporarys 80',
      '          made in load 80',
    ]);
  });
  it('leaves out native frames and wrappers of packages, never those of the program', () => {
    const profile = profileFromText(`
      weight  8  0-  w  main > Module._call_impl@plumbing > f.<locals>.wrapper@plumbing > g.<locals>.wrapper
    `);
    const { groups } = selectBlocks(profile, { device: 0, mode: 'alive', from: 0, to: 9 }, new Set());
    const lines = printTree(buildTree(profile, groups, 'stack', false, 'program'), String).split('\n');
    expect(lines).toEqual(['all 8', '  main 8', '    g.<locals>.wrapper 8', '      w 8']);
    expect(buildTree(profile, groups, 'stack', false, 'all').length).toBe(6);
  });
  it('keeps subtrees together and each byte once', () => {
    const built = tree(profileFromText(kRun), 'module');
    for (let node = 0; node < built.length; ++node) {
      let children = 0;
      let classes = 0;
      for (let child = node + 1; child < built.end[node]; child = built.end[child]) {
        expect(built.parent[child]).toBe(node);
        expect(built.start[child]).toBe(built.start[node] + children);
        children += built.bytes[child];
      }
      if (built.end[node] > node + 1) expect(children).toBe(built.bytes[node]);
      for (let i = 0; i < built.classes; ++i) classes += built.byClass[node * built.classes + i];
      expect(classes).toBe(built.bytes[node]);
    }
  });
  it('finds a path again, or as much of it as there is', () => {
    const built = tree(profileFromText(kRun), 'stack');
    for (let node = 0; node < built.length; ++node) expect(findPath(built, pathTo(built, node))).toBe(node);
    expect(pathTo(built, findPath(built, ['main', 'forward', 'gone']))).toEqual(['main', 'forward']);
  });
  it('survives a stack as deep as the recorder writes without recursing', () => {
    const deep = Array.from({ length: 20_000 }, (_, i) => `f${i}`).join(' > ');
    const profile = profileFromText(`weight  8  0-  w  ${deep.split(' > ').slice(0, 2).join(' > ')}`);
    // 20,000 frames in a row: built directly, since the text fixture searches.
    profile.stacks = {
      parent: Uint32Array.from({ length: 20_001 }, (_, i) => Math.max(0, i - 1)),
      frame: Uint32Array.from({ length: 20_001 }, (_, i) => (i === 0 ? 0 : 1)),
    };
    profile.kinds.stack[0] = 20_000;
    expect(buildTree(profile, groupsOf(profile, Uint32Array.of(1), 1), 'stack', false).length).toBe(20_002);
  });
  it('is empty for no rows', () => {
    const profile = profileFromText(kRun);
    const none = groupsOf(profile, new Uint32Array(5), 0);
    expect(printTree(buildTree(profile, none, 'stack', false), String)).toBe('all 0');
  });
});

describe('search', () => {
  const built = tree(profileFromText(kRun), 'stack');
  it('counts what matches and its bytes once', () => {
    expect(searchTree(built, 'linear')).toMatchObject({ count: 1, bytes: 500 });
    expect(searchTree(built, 'FC')).toMatchObject({ count: 4, bytes: 650 });
    expect(searchTree(built, 'main')).toMatchObject({ count: 1, bytes: 730 });
    expect(searchTree(built, 'nothing')).toMatchObject({ count: 0, bytes: 0 });
  });
  it('needs every word on one path', () => {
    expect(searchTree(built, 'build h.1')).toMatchObject({ count: 1, bytes: 50 });
    expect(searchTree(built, 'build linear')).toMatchObject({ count: 0, bytes: 0 });
  });
  it('is off without a word', () => {
    expect(searchTree(built, '  ')).toBeUndefined();
  });
});

describe('what is found', () => {
  const built = tree(profileFromText(kRun), 'stack');
  it('is gone through in a circle', () => {
    const matches = searchTree(built, 'fc');
    const labels: string[] = [];
    for (let i = 0, node = -1; i < 5; ++i) {
      node = nextHit(matches, node, 1);
      labels.push(built.label[node]);
    }
    expect(labels).toEqual(['h.0.fc', 'h.1.fc', 'h.0.fc.weight', 'h.1.fc.weight', 'h.0.fc']);
    expect(built.label[nextHit(matches, -1, -1)]).toBe('h.1.fc.weight');
    expect(nextHit(searchTree(built, 'nothing'), 0, 1)).toBe(-1);
  });
  it('is saved as folded stacks', () => {
    expect(foldedStacks(built).split('\n')[0]).toBe('main;forward;linear;h.0.fc 300');
  });
});

describe('the difference of two runs', () => {
  const select = (profile: Profile) =>
    selectBlocks(profile, { device: 0, mode: 'alive', from: 0, to: 9 }, new Set()).groups;
  it('says what grew and what shrank, wide enough to show both', () => {
    const before = profileFromText(`
      weight      100  0-  fc.weight  main > build
      activation  300  1-  [fc]       main > forward
      temporary   50   1-  -          main > forward
    `);
    const after = profileFromText(`
      weight      100  0-  fc.weight  main > build
      activation  420  1-  [fc]       main > forward
      gradient    70   1-  fc.weight  main > backward
    `);
    const tree = buildDiff(before, select(before), after, select(after), 'stack', false, 'all');
    const lines = tree.label.map(
      (label, node) =>
        `${'  '.repeat(tree.depth[node])}${label} ${tree.before[node]} -> ${tree.after[node]} (${tree.bytes[node]})`,
    );
    expect(lines).toEqual([
      'all 450 -> 590 (640)',
      '  main 450 -> 590 (640)',
      '    forward 350 -> 420 (470)',
      '      fc 300 -> 420 (420)',
      '      made in load 50 -> 0 (50)',
      '    build 100 -> 100 (100)',
      '      fc.weight 100 -> 100 (100)',
      '    backward 0 -> 70 (70)',
      '      fc.weight 0 -> 70 (70)',
    ]);
  });
});
