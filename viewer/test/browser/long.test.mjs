// Traces of more events than the timeline has room for: detail where the reader looks, in the page or from a server.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { openContainer } from '../../src/data/container.ts';
import { finerCurve } from '../../src/data/finer.ts';
import { profileOf } from '../../src/data/profile.ts';
import {
  launch,
  longTrace,
  open,
  pictures,
  readPage,
  serve,
  settle,
  show,
  traces,
  writePage,
} from './page.mjs';

assert.ok(longTrace !== '', 'VRAMTRACE_LONG names no trace: see page.mjs');
let browser;
let page;
before(async () => {
  browser = await launch();
  page = writePage(longTrace, { name: 'long', options: ['--no-forecast'] });
});
after(() => browser.close());

function profileIn(file) {
  const base64 = /class="vramtrace-data">([^<]*)</.exec(readPage(file))[1];
  const bytes = gunzipSync(Buffer.from(base64, 'base64'));
  return profileOf(openContainer(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)));
}

// What hovering the timeline at these parts of its width says.
async function hovered(tab, parts) {
  const box = await (await tab.$('.timeline-canvas')).boundingBox();
  const texts = [];
  for (const part of parts) {
    await tab.mouse.move(box.x + 66 + (box.width - 80) * part, box.y + box.height / 2);
    await settle(tab);
    texts.push((await tab.textContent('.tooltip')).replace(/\s+/g, ' '));
  }
  return texts;
}

const idle = (tab) => tab.waitForFunction(() => document.querySelector('header [role=status]') === null);
const eventIn = (text) => Number(/event ([\d,]+)/.exec(text)[1].replaceAll(',', ''));

it('adds lives up to the curve that the analyzer saw, event by event', () => {
  // A short trace has a bucket for every event: what was seen there is what a long one's stretch must come to.
  const profile = profileIn(writePage(traces[0], { name: 'short', options: ['--no-forecast'] }));
  const seen = profile.curves.get(0);
  assert.equal(seen.length, profile.ticks);
  const half = profile.ticks >> 1; // the whole is more than is drawn event by event
  for (const [from, to] of [
    [0, half - 1],
    [half, profile.ticks - 1],
  ]) {
    const added = finerCurve(profile, profile.blocks, 0, seen, from, to);
    const same = (what, one, other) => assert.deepEqual([...one], [...other.slice(from, to + 1)], what);
    for (const column of ['tick', 'time', 'step', 'highest', 'lowest', 'reserved', 'used'])
      same(column, added[column], seen[column]);
    for (const [band, values] of seen.bands)
      same(`band ${band}`, added.bands.get(band) ?? new Float64Array(to - from + 1), values);
  }
});

it('shows every event of a short stretch, and keys go from one to the next', async () => {
  const { tab, trouble } = await open(browser, page, { hash: '#v=1&w=50000/50040&t=50010' });
  const events = (await hovered(tab, [0.01, 0.26, 0.51, 0.76])).map(eventIn);
  assert.deepEqual(events, [50_000, 50_010, 50_020, 50_030]);
  await tab.keyboard.press('ArrowRight');
  await settle(tab);
  assert.match(await tab.evaluate(() => location.hash), /t=50011/);
  await tab.screenshot({ path: join(pictures, 'long-stretch.png') });
  await show(tab, '#v=1');
  await tab.screenshot({ path: join(pictures, 'long-whole.png') });
  assert.deepEqual(trouble, []);
  await tab.close();
});

it('asks its server for the events of a stretch, which are those of the whole page', async (test) => {
  const address = await serve(test, longTrace, ['--max-blocks', '10']);
  const served = await open(browser, address);
  const whole = await open(browser, page);
  for (const hash of ['#v=1&w=50000/50040&t=50010', '#v=1&w=60000/60400&x=time&t=60100']) {
    const texts = [];
    for (const { tab } of [served, whole]) {
      await show(tab, hash);
      await idle(tab);
      await settle(tab);
      texts.push(await hovered(tab, [0.05, 0.3, 0.55, 0.95]));
    }
    assert.deepEqual(texts[0], texts[1], hash);
  }
  assert.deepEqual(served.trouble, []);
  assert.deepEqual(whole.trouble, []);
});

it('keeps full detail around the peak of what it cannot hold, and says how to see the rest', async () => {
  const part = writePage(longTrace, { name: 'part', options: ['--no-forecast', '--max-blocks', '10'] });
  const profile = profileIn(part);
  assert.equal(profile.complete, false);
  const peak = profile.marks.find((mark) => mark.kind === 'peak').tick;
  const [from, to] = profile.detail.find(([first, last]) => first <= peak && peak <= last);
  const outside = to + 20_000 < profile.ticks ? to + 20_000 : from - 20_000;
  assert.ok(outside > 0 && profile.keyframes.every((tick) => Math.abs(tick - outside) > 2));
  const kept = await open(browser, part);
  const whole = await open(browser, page);
  const status = async ({ tab }, hash) => {
    await show(tab, hash);
    return tab.textContent('.blocks [role=status]');
  };
  for (const hash of [
    `#v=1&view=blocks&t=${peak + 25}`,
    `#v=1&view=blocks&t=${peak + 25}&f=${peak - 20}&m=allocated`,
  ]) {
    assert.equal(await status(kept, hash), await status(whole, hash), hash);
    assert.doesNotMatch(await kept.tab.textContent('.explanation'), /--serve/, hash);
  }
  for (const hash of [
    `#v=1&view=blocks&t=${outside}`,
    `#v=1&view=blocks&t=${outside}&f=${outside - 50}&m=allocated`,
  ]) {
    await show(kept.tab, hash);
    assert.match(await kept.tab.textContent('.explanation'), /vramtrace view --serve/, hash);
  }
  assert.deepEqual(kept.trouble, []);
  await kept.tab.close();
  await whole.tab.close();
});
