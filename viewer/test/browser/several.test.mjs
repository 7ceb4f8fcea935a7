// Pages of several traces, and pages that a server answers.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, it } from 'node:test';
import {
  analyze,
  command,
  launch,
  open,
  pictures,
  portray,
  runOf,
  seriousFaults,
  serve,
  settle,
  show,
  traces,
  writePage,
} from './page.mjs';

assert.ok(traces.length > 1, 'VRAMTRACE_TRACES names fewer than two traces: see page.mjs');
const [first, second] = traces;
const grouped = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

it('shows the ranks of a run side by side', async () => {
  const page = writePage(runOf(traces), { name: 'run', options: ['--no-forecast'] });
  const { tab, trouble } = await open(browser, page, { hash: '#v=1&view=ranks' });
  assert.equal((await tab.$$('.rank canvas')).length, traces.length);
  assert.deepEqual(await seriousFaults(tab), []);
  await portray(browser, page, { ranks: 'view=ranks' });
  await tab.click('.rank >> nth=1 >> text=look at it');
  await settle(tab);
  assert.match(await tab.evaluate(() => location.hash), /r=1/);
  assert.ok(await tab.isVisible('.flame'));
  await tab.goBack();
  await settle(tab);
  assert.ok(await tab.isVisible('.ranks'));
  assert.deepEqual(trouble, []);
  await tab.close();
});

it('shows the difference of two traces, to the byte', async () => {
  const page = writePage(second, { name: 'difference', options: ['--no-forecast', '--against', first] });
  const [before, after] = [first, second].map((trace) => {
    const device = analyze(trace).devices[0];
    return new Map((device.at_refusal ?? device.at_peak).classes.map((row) => [row.words, row.bytes]));
  });
  const { tab, trouble } = await open(browser, page, { hash: '#v=1&view=diff&by=module' });
  const rows = await tab.$$eval('.differences tbody tr', (all) =>
    all.map((row) => [row.cells[0].textContent.trim(), row.cells[3].title]),
  );
  for (const [words, bytes] of after) {
    const row = rows.find(([name]) => name === words);
    assert.equal(row?.[1], `${grouped(bytes - (before.get(words) ?? 0))} B`, words);
  }
  assert.deepEqual(await seriousFaults(tab), []);
  await portray(browser, page, { difference: 'view=diff&by=module' });
  const box = await (await tab.$('.diff canvas')).boundingBox();
  await tab.mouse.move(box.x + 60, box.y + 30);
  await settle(tab);
  assert.match(await tab.textContent('.tooltip'), /difference/);
  await tab.mouse.click(box.x + 60, box.y + 30);
  await settle(tab);
  const clicked = await tab.evaluate(() => location.hash);
  assert.match(clicked, /z=/);
  // The same keys, breadcrumbs and search as in the flame graph of one trace.
  await tab.focus('.diff canvas');
  await tab.keyboard.press('ArrowDown');
  await tab.keyboard.press('ArrowRight');
  await tab.keyboard.press('ArrowLeft');
  await settle(tab);
  assert.match(await tab.getAttribute('.diff canvas', 'aria-label'), /goes back\. ./);
  assert.match(await tab.textContent('.diff .only-read'), /, (=|[+−-])/);
  await tab.keyboard.press('Enter');
  await settle(tab);
  assert.ok((await tab.evaluate(() => location.hash)).length > clicked.length);
  await tab.keyboard.press('Backspace');
  await settle(tab);
  assert.equal(await tab.evaluate(() => location.hash), clicked);
  await tab.click('.breadcrumbs >> text=all');
  await tab.keyboard.press('/');
  await tab.keyboard.type('attn');
  await settle(tab);
  assert.match(await tab.textContent('.diff .found'), /^[\d,]+ found, /);
  const download = tab.waitForEvent('download');
  await tab.click('.diff >> text=save stacks');
  const folded = readFileSync(await (await download).path(), 'utf8');
  assert.match(folded, /^.+ \d+ \d+$/m);
  assert.deepEqual(trouble, []);
  await tab.close();
});

it('asks its server for the blocks of a trace that is too long to embed', async (test) => {
  const address = await serve(test, first, ['--max-blocks', '10']);
  assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
  const { tab, trouble } = await open(browser, address, { hash: '#v=1&view=blocks&t=300' });
  const whole = await open(browser, writePage(first, { options: ['--no-forecast'] }), {
    hash: '#v=1&view=blocks&t=300',
  });
  const status = (page) => page.textContent('.blocks [role=status]');
  await tab.waitForFunction(() => document.querySelector('header [role=status]') === null);
  await settle(tab);
  assert.equal(await status(tab), await status(whole.tab));
  for (const mode of ['allocated', 'kept', 'freed']) {
    const hash = `#v=1&view=blocks&t=900&f=200&m=${mode}`;
    await show(tab, hash);
    await tab.waitForFunction(() => document.querySelector('header [role=status]') === null);
    await settle(tab);
    await show(whole.tab, hash);
    assert.equal(await status(tab), await status(whole.tab), mode);
  }
  assert.deepEqual(trouble, []);
  await tab.close();
  await whole.tab.close();
});

it('refuses those who do not have the token, and other hosts', async (test) => {
  const address = await serve(test, first);
  const { port } = new URL(address);
  for (const path of ['/', '/traces', `/${'0'.repeat(32)}/`]) {
    assert.equal((await fetch(`http://127.0.0.1:${port}${path}`)).status, 403, path);
  }
  assert.equal((await fetch(`${address}trace/7`)).status, 404);
  assert.equal((await fetch(`${address}trace/0/blocks?device=x`)).status, 400);
  assert.equal((await fetch(address, { method: 'POST' })).status, 405);
  assert.equal((await fetch(`${address}traces`)).status, 200);
});

it('says how to reach it where the port is taken, where no browser is, and from elsewhere', async (test) => {
  const { DISPLAY: _x, WAYLAND_DISPLAY: _w, ...environment } = process.env;
  // What is said before the address, up to it, and what comes with it.
  const start = async (options) => {
    const server = spawn(command, ['view', '--serve', '--no-forecast', ...options, first], {
      env: environment,
    });
    test.after(() => server.kill());
    const text = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'])
      server[name].on('data', (part) => {
        text[name] += part;
      });
    const code = await Promise.race([
      once(server, 'close').then(([status]) => status),
      new Promise((done) => {
        server.stderr.on('data', () => /Ctrl-C/.test(text.stderr) && done(null));
      }),
    ]);
    return { code, ...text };
  };
  const running = await start(['--open']);
  const { port } = new URL(running.stdout.trim());
  assert.match(running.stderr, new RegExp(`ssh -L ${port}:127\\.0\\.0\\.1:${port} \\S+`));
  const refused = await start(['--port', port]);
  assert.equal(refused.code, 3);
  assert.match(refused.stderr, new RegExp(`127.0.0.1:${port}: .*in use.*--port`));
  // Without --port the next one that is free.
  assert.notEqual(new URL((await start([])).stdout.trim()).port, port);
  const page = join(runOf([]), 'page.html');
  const written = spawnSync(command, ['view', '--no-forecast', '--open', first, '-o', page], {
    env: environment,
    encoding: 'utf8',
  });
  assert.equal(written.status, 0);
  assert.match(written.stderr, new RegExp(`no browser .*: open file://${page}`));
});

it('follows a trace that is being written', async (test) => {
  const copy = join(runOf([]), basename(first));
  const bytes = readFileSync(first);
  // Chunks of 256 KiB: without the last one it is a trace whose program still runs.
  writeFileSync(copy, bytes.subarray(0, ((bytes.length >> 18) - 1) << 18));
  const { tab } = await open(browser, await serve(test, copy, ['--watch']), { hash: '#v=1&view=modules' });
  const headline = () => document.querySelector('.explanation').textContent;
  const before = await tab.evaluate(headline);
  copyFileSync(first, copy);
  await tab.waitForFunction((old) => document.querySelector('.explanation').textContent !== old, before);
  assert.ok(await tab.isVisible('.modules'), 'what is selected stays');
  await tab.close();
});

it('draws without a browser, too', async () => {
  const text = execFileSync(command, ['view', '--terminal', first], { encoding: 'utf8' });
  const device = analyze(first).devices[0];
  assert.match(text, / peak allocated/);
  for (const row of (device.at_refusal ?? device.at_peak).classes)
    assert.ok(text.includes(row.words), row.words);
  const svg = join(pictures, 'analyze.svg');
  execFileSync(command, ['analyze', '--svg', svg, first]);
  const tab = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await tab.goto(`file://${svg}`);
  assert.ok((await tab.$$('text')).length > 20);
  await tab.screenshot({ path: join(pictures, 'analyze-svg.png') });
  await tab.close();
});
