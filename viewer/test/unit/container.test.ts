import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { decompress, openContainer } from '../../src/data/container.ts';

function container(header: object, data: Uint8Array): Buffer {
  let text = Buffer.from(JSON.stringify(header));
  text = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, ' ')]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([Buffer.from('VTVIEW01'), length, text, data]);
}

const kColumn = { name: 'x', type: 'f64', offset: 0, count: 2 };
const kValues = new Uint8Array(Float64Array.of(1, 2 ** 53 - 1).buffer);

it('reads what was compressed, exactly', async () => {
  const bytes = container({ columns: [kColumn], more: 'ü' }, kValues);
  const opened = openContainer(await decompress(gzipSync(bytes).toString('base64')));
  expect(opened.header.more).toBe('ü');
  expect([...(opened.columns.get('x') ?? [])]).toEqual([1, 2 ** 53 - 1]);
});

it('adds up columns that hold differences', () => {
  const values = Uint32Array.of(5, 2, 0, 10);
  const column = { name: 'x', type: 'u32', offset: 0, count: 4, coding: 'difference' };
  const bytes = container({ columns: [column] }, new Uint8Array(values.buffer));
  const opened = openContainer(new Uint8Array(bytes).buffer);
  expect([...(opened.columns.get('x') ?? [])]).toEqual([5, 7, 7, 17]);
});

it('decodes long texts in pieces', async () => {
  const random = new Uint8Array(3_000_000).map((_, i) => (i * 2654435761) >>> 13);
  const back = await decompress(gzipSync(random, { level: 0 }).toString('base64'));
  expect(Buffer.from(back).equals(Buffer.from(random))).toBe(true);
});

it('says what is wrong with damaged data', async () => {
  const open = (bytes: Buffer) => () => openContainer(new Uint8Array(bytes).buffer);
  const whole = container({ columns: [kColumn] }, kValues);
  await expect(decompress('AAAA')).rejects.toThrow('cannot be decompressed');
  expect(open(Buffer.from('short'))).toThrow('too short');
  expect(open(Buffer.concat([Buffer.from('NOTATALL'), whole.subarray(8)]))).toThrow('NOTATALL');
  expect(open(whole.subarray(0, whole.length - 8))).toThrow('column x is cut');
  expect(open(whole.subarray(0, 40))).toThrow('header is longer');
});
