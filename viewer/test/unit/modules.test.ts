import { expect, it } from 'vitest';
import { groupsOf } from '../../src/data/live.ts';
import { moduleRows } from '../../src/data/modules.ts';
import { profileFromText } from './fixture.ts';

const kRun = `
  weight      100  0-  h.2.fc.weight   main
  weight      50   0-  h.10.fc.weight  main
  gradient    100  0-  h.2.fc.weight   main
  activation  300  1-  [h.2]           main
  temporary   80   1-  -               main
`;

it('adds up modules with what is below them, in the order of their numbers', () => {
  const profile = profileFromText(kRun);
  const rows = moduleRows(
    profile,
    groupsOf(profile, Uint32Array.of(1, 1, 1, 1, 1), 5),
    new Set(['', 'h', 'h.2']),
  );
  expect(
    rows.map((row) => `${'  '.repeat(row.depth)}${row.label} ${[...row.bytes].join(' ')} = ${row.total}`),
  ).toEqual([
    'model 150 100 0 300 0 0 = 550',
    '  h 150 100 0 300 0 0 = 550',
    '    2 100 100 0 300 0 0 = 500',
    '      fc 100 100 0 0 0 0 = 200',
    '    10 50 0 0 0 0 0 = 50',
    'outside of modules 0 0 0 0 80 0 = 80',
  ]);
});
