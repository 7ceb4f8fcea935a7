import { expect, it } from 'vitest';
import { grouped, share, size } from '../../src/data/format.ts';

// The same cases as tests/unit/analyzer_text_test.cpp has of report::Size.
it('writes sizes as analyze does', () => {
  expect(size(0)).toBe('0 B');
  expect(size(1023)).toBe('1023 B');
  expect(size(1024)).toBe('1.0 KiB');
  expect(size(1024 ** 2 - 1)).toBe('1.0 MiB');
  expect(size(1024 ** 3 - 1)).toBe('1.00 GiB');
  expect(size(9795796992)).toBe('9.12 GiB');
  expect(size(-2048)).toBe('-2.0 KiB');
});

it('groups digits and divides', () => {
  expect(grouped(25382879232)).toBe('25,382,879,232');
  expect(grouped(-1234)).toBe('-1,234');
  expect(share(1, 3)).toBe('33.3 %');
  expect(share(1, 0)).toBe('–');
});
