// The viewer in a real browser, on real traces, from file://.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  analyze,
  launch,
  open,
  pictures,
  portray,
  readPage,
  seriousFaults,
  settle,
  show,
  traces,
  withHeader,
  writePage,
} from './page.mjs';

assert.ok(traces.length > 0, 'VRAMTRACE_TRACES names no trace: see page.mjs');
const grouped = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

for (const trace of traces) {
  const name = basename(trace, '.vtrace');
  describe(name, () => {
    let page;
    let report;
    before(() => {
      page = writePage(trace);
      report = analyze(trace);
    });

    it('shows the numbers of analyze, to the byte', async () => {
      const { tab, trouble } = await open(browser, page);
      const device = report.devices[0];
      const shown = device.at_refusal ?? device.at_peak;
      const cells = await tab.$$eval('.identity tr', (rows) => rows.map((row) => row.textContent));
      const terms = shown.identity.terms.filter((term) => term.bytes !== 0);
      assert.equal(cells.length, terms.length + 1);
      for (const term of terms) {
        const row = cells.find((cell) => cell.trim().startsWith(term.words));
        assert.ok(row?.includes(`${grouped(term.bytes)} B`), `${term.words} ${term.bytes}: ${row}`);
      }
      assert.ok(cells.at(-1).includes(`${grouped(shown.identity.device_used)} B`));
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('explains as analyze does: why it filled, and what would change it', async () => {
      const { tab, trouble } = await open(browser, page);
      const text = (await tab.textContent('.explanation')).replace(/\s+/g, ' ');
      const shown = report.diagnoses[0].diagnoses.filter((diagnosis) => diagnosis.shown);
      assert.ok(shown.length > 0);
      for (const diagnosis of shown) {
        for (const part of [diagnosis.title, diagnosis.sentence, `${diagnosis.confidence} confidence`])
          assert.ok(text.includes(part), part);
        for (const remedy of diagnosis.remedies) assert.ok(text.includes(remedy.change), remedy.change);
      }
      const predicted = shown.flatMap((diagnosis) => diagnosis.remedies.filter((remedy) => remedy.used > 0));
      assert.equal(text.match(/: then [\d.]+ [KMG]iB used/g)?.length ?? 0, predicted.length);
      assert.equal(
        text.includes('vramtrace dry-run --gpu'),
        report.devices[0].out_of_memory !== undefined && report.steps.completed < 2,
      );
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('lists every live block of analyze', async () => {
      const { tab, trouble } = await open(browser, page, { hash: '#v=1&view=blocks' });
      const device = report.devices[0];
      const shown = device.at_refusal ?? device.at_peak;
      const status = await tab.textContent('.blocks [role=status]');
      const count = grouped(shown.allocation_count);
      assert.ok(status.startsWith(`${count} of ${count} allocations, `), status);
      const elements = await tab.$$eval('.row', (rows) => rows.length);
      assert.ok(elements < 80, `${elements} elements: the list is to hold only rows in view`);
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('draws every view in both themes, 1280 and 3840 wide, and axe finds nothing serious', () =>
      portray(
        browser,
        page,
        Object.fromEntries(
          ['flame', 'blocks', 'modules', 'map'].map((view) => [`${name}-${view}`, `view=${view}`]),
        ),
      ));

    it('goes by keyboard, and the address keeps the state', async () => {
      const { tab, trouble } = await open(browser, page);
      await tab.keyboard.press('?');
      await tab.waitForSelector('dialog[open]');
      assert.ok(await tab.isVisible('dialog'));
      await tab.screenshot({ path: join(pictures, `${name}-help.png`) });
      await tab.keyboard.press('Escape');
      assert.equal(await tab.isVisible('dialog'), false);
      await tab.keyboard.press('m');
      await tab.keyboard.press('i');
      await tab.keyboard.press('x');
      await tab.keyboard.press('/');
      await tab.keyboard.type('weight');
      await settle(tab);
      const found = await tab.textContent('.found');
      assert.match(found, /^[\d,]+ found, /);
      await tab.click('.found >> text=↓');
      await settle(tab);
      assert.match(await tab.getAttribute('.flame canvas', 'aria-label'), /goes back\. ./);
      const hash = await tab.evaluate(() => location.hash);
      for (const part of ['by=module', 'inv=true', 'x=time', 'q=weight'])
        assert.ok(hash.includes(part), hash);
      await tab.reload();
      await tab.waitForSelector('canvas');
      await settle(tab);
      assert.equal(await tab.textContent('.found'), found);
      await tab.keyboard.press('3');
      await settle(tab);
      assert.ok(await tab.isVisible('.modules'));
      await tab.goBack();
      await settle(tab);
      assert.ok(await tab.isVisible('.flame'));
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('selects an instant by a click, a range by a drag, and goes back', async () => {
      const { tab, trouble } = await open(browser, page);
      const box = await (await tab.$('.timeline-canvas')).boundingBox();
      const y = box.y + box.height / 2;
      await tab.mouse.move(box.x + box.width * 0.4, y);
      await settle(tab);
      assert.match(await tab.textContent('.tooltip'), / allocated/);
      await tab.mouse.click(box.x + box.width * 0.4, y);
      await settle(tab);
      assert.match(await tab.evaluate(() => location.hash), /[#&]t=\d+/);
      assert.match(await tab.textContent('.explanation'), /Alive at event/);
      await tab.mouse.move(box.x + box.width * 0.3, y);
      await tab.mouse.down();
      await tab.mouse.move(box.x + box.width * 0.5, y, { steps: 5 });
      await tab.mouse.up();
      await settle(tab);
      assert.ok(await tab.isVisible('.range'));
      await tab.selectOption('.range select', 'allocated');
      await settle(tab);
      await tab.screenshot({ path: join(pictures, `${name}-range.png`) });
      assert.match(await tab.evaluate(() => location.hash), /m=allocated/);
      await tab.click('text=clear range');
      await settle(tab);
      assert.equal(await tab.isVisible('.range'), false);
      await tab.keyboard.press('p');
      await settle(tab);
      assert.equal(await tab.evaluate(() => location.hash), '#v=1');
      // The same by keys alone.
      await tab.keyboard.press('Shift+ArrowLeft');
      await tab.keyboard.press('r');
      await tab.keyboard.press('ArrowRight');
      await tab.keyboard.press('ArrowRight');
      await settle(tab);
      assert.match(await tab.textContent('.range'), /^3 events/);
      assert.match(await tab.evaluate(() => location.hash), /m=kept/);
      await tab.keyboard.press('r');
      await settle(tab);
      assert.equal(await tab.isVisible('.range'), false);
      await tab.goBack();
      await settle(tab);
      assert.match(await tab.textContent('.range'), /^3 events/);
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('zooms the flame graph by click and by keys, with breadcrumbs back', async () => {
      const { tab, trouble } = await open(browser, page);
      const canvas = await tab.$('.flame canvas');
      const box = await canvas.boundingBox();
      await tab.mouse.move(box.x + 40, box.y + 50);
      await settle(tab);
      assert.match(await tab.textContent('.tooltip'), /[\d,]+ B, [\d.]+ %, [\d,]+ blocks?/);
      await tab.screenshot({ path: join(pictures, `${name}-hover.png`) });
      await tab.mouse.click(box.x + 40, box.y + 50);
      await settle(tab);
      assert.ok(await tab.isVisible('.breadcrumbs'));
      const hash = await tab.evaluate(() => location.hash);
      await canvas.focus();
      await tab.keyboard.press('ArrowDown');
      await tab.keyboard.press('Enter');
      await settle(tab);
      assert.ok((await tab.evaluate(() => location.hash)).length > hash.length);
      await tab.keyboard.press('Backspace');
      await settle(tab);
      assert.equal(await tab.evaluate(() => location.hash), hash);
      await tab.click('.breadcrumbs >> text=all');
      await settle(tab);
      assert.equal(await tab.isVisible('.breadcrumbs'), false);
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('shows a block with its evidence and stack', async () => {
      const { tab, trouble } = await open(browser, page, { hash: '#v=1&view=blocks' });
      await tab.click('.row:not(.head) >> nth=0');
      await settle(tab);
      const text = await tab.textContent('.selected-block');
      assert.match(text, /evidence/);
      assert.match(text, /confidence/);
      // Where a page may not write to the clipboard, nothing is lost but the copy: here it may.
      await tab.evaluate(() => {
        Object.defineProperty(navigator, 'clipboard', {
          value: { writeText: async (copied) => Object.assign(globalThis, { copied }) },
        });
      });
      await tab.click('text=copy stack');
      const copied = await tab.evaluate(() => globalThis.copied);
      const frames = await tab.$$eval('.stack li', (all) => all.map((one) => one.textContent.trim()));
      assert.deepEqual(
        copied.split('\n').map((line) => line.replace('  ', ' ').trim()),
        frames,
      );
      await tab.click('[role=columnheader] >> text=class');
      await settle(tab);
      assert.match(await tab.evaluate(() => location.hash), /sort=class/);
      const download = tab.waitForEvent('download');
      await tab.click('text=save CSV');
      assert.equal((await download).suggestedFilename(), 'vramtrace-allocations.csv');
      await tab.click('text=tensors');
      await settle(tab);
      const tensors = await tab.textContent('.blocks [role=status]');
      assert.match(tensors, /^[\d,]+ of [\d,]+ tensors, /);
      assert.match(await tab.textContent('[role=grid]'), /\[\d+(, \d+)*\].*float32/s);
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('saves what it shows as PNG and as SVG', async () => {
      const { tab, trouble } = await open(browser, page);
      for (const [view, button, file] of [
        ['flame', '.flame >> text="SVG"', 'vramtrace-flame.svg'],
        ['flame', '.flame >> text="save PNG"', 'vramtrace-flame.png'],
        ['flame', '.timeline >> text="SVG"', 'vramtrace-timeline.svg'],
        ['flame', 'text=save stacks', 'vramtrace-stacks.folded'],
        ['map', '.map >> text="SVG"', 'vramtrace-segments.svg'],
      ]) {
        await show(tab, `#v=1&view=${view}`);
        const waiting = tab.waitForEvent('download');
        await tab.click(button);
        const download = await waiting;
        assert.equal(download.suggestedFilename(), file);
        const bytes = readFileSync(await download.path());
        if (file.endsWith('.svg')) {
          const texts = await tab.evaluate((svg) => {
            const parsed = new DOMParser().parseFromString(svg, 'image/svg+xml');
            return parsed.querySelector('parsererror') === null ? parsed.querySelectorAll('text').length : -1;
          }, bytes.toString('utf8'));
          assert.ok(texts > 3, `${file}: ${texts} texts`);
        } else assert.ok(bytes.length > 1000);
      }
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('dims what a search does not find, and counts in every view', async () => {
      const { tab, trouble } = await open(browser, page, { hash: '#v=1&view=flame' });
      const colors = () =>
        tab.$eval('.flame canvas', (canvas) => {
          const copy = new OffscreenCanvas(canvas.width, canvas.height);
          const context = copy.getContext('2d', { willReadFrequently: true });
          context.drawImage(canvas, 0, 0);
          const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
          const seen = new Map();
          for (let i = 0; i < data.length; i += 4) {
            const color = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
            seen.set(color, (seen.get(color) ?? 0) + 1);
          }
          return [...seen].filter(([, count]) => count > 2000).length;
        });
      const before = await colors();
      await show(tab, '#v=1&view=flame&q=nothing%20of%20that%20name');
      assert.match(await tab.textContent('.found'), /^0 found, 0 B/);
      assert.ok((await colors()) < before, 'all boxes are dimmed');
      for (const [view, words] of [
        ['blocks', /^[\d,]+ of [\d,]+ allocations/],
        ['modules', /^\d+ of \d+ open rows found/],
        ['map', /^[\d,]+ found, /],
      ]) {
        await show(tab, `#v=1&view=${view}&q=weight`);
        const found = view === 'blocks' ? '.blocks [role=status]' : `.${view} .found`;
        assert.match(await tab.textContent(found), words, view);
      }
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('keeps opened modules in the address', async () => {
      const { tab, trouble } = await open(browser, page, { hash: '#v=1&view=modules' });
      const rows = async () => (await tab.$$('.modules tbody tr')).length;
      const first = await rows();
      await tab.click('.modules .toggle[aria-label^=Close] >> nth=0');
      await settle(tab);
      const closed = await rows();
      assert.ok(closed < first, `${closed} of ${first}`);
      await tab.reload();
      await tab.waitForSelector('.modules');
      await settle(tab);
      assert.equal(await rows(), closed);
      await tab.goBack();
      await settle(tab);
      assert.equal(await rows(), first);
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('says what pins a segment', async () => {
      const { tab, trouble } = await open(browser, page, { hash: '#v=1&view=map' });
      const box = await (await tab.$('.map canvas')).boundingBox();
      await tab.mouse.move(box.x + 120, box.y + 8);
      await settle(tab);
      assert.match(await tab.textContent('.tooltip'), /What pins this segment.* live of /s);
      await tab.focus('.map canvas');
      await tab.keyboard.press('ArrowDown');
      await tab.keyboard.press('ArrowRight');
      await settle(tab);
      assert.match(await tab.textContent('.selected-block'), /evidence/);
      await tab.keyboard.press('/');
      await tab.keyboard.type('weights');
      await settle(tab);
      assert.match(await tab.textContent('.map .found'), /^[\d,]+ found, /);
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('answers what if, from tables, where the trace holds whole steps', async () => {
      const { tab, trouble } = await open(browser, page);
      const offered = await tab.$$eval('[role=tab]', (tabs) => tabs.map((one) => one.textContent));
      assert.equal(offered.includes('What if'), report.steps.completed >= 2, offered.join());
      if (offered.includes('What if')) {
        await tab.click('[role=tab] >> text=What if');
        await settle(tab);
        const verdict = () => tab.textContent('.what-if .verdict');
        const recorded = await verdict();
        await tab.click('.what-if fieldset >> nth=0 >> button >> nth=0');
        await settle(tab);
        assert.notEqual(await verdict(), recorded);
        assert.match(await tab.evaluate(() => location.hash), /batch=1/);
        await tab.click('.what-if fieldset >> nth=1 >> button >> nth=1');
        await tab.selectOption('.what-if select', 'rtx3060-12');
        await settle(tab);
        assert.match(await tab.evaluate(() => location.hash), /with=.*gpu=rtx3060-12/);
        assert.deepEqual(await seriousFaults(tab), []);
        await portray(browser, page, { [`${name}-whatif`]: 'view=whatif' });
      }
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('treats every name of a trace as text', async () => {
      const hostile = '</script><img src=x onerror="alert(1)"><b>bold</b>&amp;\u202e';
      const html = withHeader(readPage(page), (header) => ({
        ...header,
        strings: header.strings.map((text, i) => (i === 0 ? text : `${hostile}${text}`)),
        report: JSON.parse(
          JSON.stringify(header.report, (key, value) =>
            typeof value === 'string' && !['key', 'severity'].includes(key) ? hostile + value : value,
          ),
        ),
      }));
      const file = join(pictures, `${name}-hostile.html`);
      writeFileSync(file, html);
      const { tab, trouble } = await open(browser, file);
      for (const view of ['flame', 'blocks', 'modules', 'map']) {
        await show(tab, `#v=1&view=${view}&b=0`);
        assert.equal(await tab.$('.failure'), null);
        assert.equal(await tab.$$eval('img, b, #app script', (all) => all.length), 0, view);
        assert.ok((await tab.textContent('.explanation')).includes('<b>bold</b>'), 'it is there, as text');
      }
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('warns of losses and damage', async () => {
      const html = withHeader(readPage(page), (header) => ({
        ...header,
        damaged: true,
        report: {
          ...header.report,
          notes: [{ severity: 'damage', key: 'X', text: 'The file is cut at byte 12.' }],
        },
      }));
      const file = join(pictures, `${name}-damaged.html`);
      writeFileSync(file, html);
      const { tab, trouble } = await open(browser, file);
      assert.match(await tab.textContent('[role=alert]'), /damaged.*cut at byte 12/s);
      assert.deepEqual(trouble, []);
      await tab.close();
    });

    it('says what is wrong with a damaged page', async () => {
      const file = join(pictures, `${name}-broken.html`);
      writeFileSync(file, readPage(page).replace(/(class="vramtrace-data">)[^<]{8}/, '$1AAAAAAAA'));
      const { tab } = await open(browser, file);
      assert.notEqual(await tab.textContent('.failure'), '');
      await tab.close();
    });

    it('has a first picture soon', async () => {
      const { tab } = await open(browser, page);
      const ms = await tab.evaluate(
        () => performance.getEntriesByName('vramtrace-first-picture')[0].startTime,
      );
      console.log(`${name}: first picture after ${ms.toFixed(0)} ms, page of ${readPage(page).length} bytes`);
      // A figure to report; a bound here would judge what else the machine does.
      assert.ok(ms > 0);
      await tab.close();
    });
  });
}
