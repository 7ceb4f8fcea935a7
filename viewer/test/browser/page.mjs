// Pages and browsers for the tests here.
//
//   VRAMTRACE         the command (build/release/bin/vramtrace)
//   VRAMTRACE_TRACES  traces to look at, with ':' between them
//   VRAMTRACE_LONG    a trace of some hundred thousand events
//   CHROMIUM          the browser (/usr/bin/chromium)
//   SCREENSHOTS       where pictures go (test-output)
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('../../..', import.meta.url));
export const command = process.env.VRAMTRACE ?? join(root, 'build/release/bin/vramtrace');
export const traces = (process.env.VRAMTRACE_TRACES ?? '').split(':').filter((path) => path !== '');
export const longTrace = process.env.VRAMTRACE_LONG ?? '';
export const pictures = process.env.SCREENSHOTS ?? join(root, 'viewer/test-output');
mkdirSync(pictures, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), 'vramtrace-viewer-'));

export function writePage(trace, { name = basename(trace), options = [] } = {}) {
  const page = join(folder, `${name}.html`);
  execFileSync(command, ['view', trace, '-o', page, ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
  return page;
}

// `vramtrace view --serve`; ends with the test. Returns its address.
export async function serve(test, trace, options = []) {
  const server = spawn(command, ['view', '--serve', '--no-forecast', ...options, trace], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  test.after(() => server.kill());
  let text = '';
  for await (const part of server.stdout) {
    text += part;
    if (text.includes('\n')) break;
  }
  return text.trim();
}

// A folder with these traces: a run of several processes.
export function runOf(paths) {
  const run = mkdtempSync(join(folder, 'run-'));
  for (const path of paths) copyFileSync(path, join(run, basename(path)));
  return run;
}

export function analyze(trace) {
  const text = execFileSync(command, ['analyze', '--format', 'json', trace], { maxBuffer: 1 << 30 });
  return JSON.parse(text.toString('utf8'));
}

const kData = /(class="vramtrace-data">)([^<]*)(<)/;

// The page's header changed by `change`, the rest as it is.
export function withHeader(html, change) {
  return html.replace(kData, (_all, before, base64, after) => {
    const bytes = gunzipSync(Buffer.from(base64, 'base64'));
    const length = Number(bytes.readBigUInt64LE(8));
    const header = change(JSON.parse(bytes.subarray(16, 16 + length).toString('utf8')));
    let text = Buffer.from(JSON.stringify(header));
    text = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, ' ')]);
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(text.length));
    const changed = Buffer.concat([bytes.subarray(0, 8), size, text, bytes.subarray(16 + length)]);
    return before + gzipSync(changed).toString('base64') + after;
  });
}

export const readPage = (page) => readFileSync(page, 'utf8');

export const kSizes = [
  [1280, 800],
  [3840, 2160],
];

export async function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

// Opens `page` from file://. Everything that the page logs, throws, or asks the network for ends up in `trouble`.
export async function open(browser, page, { hash = '', theme = 'light', width = 1440, height = 900 } = {}) {
  const tab = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
  tab.setDefaultTimeout(180_000); // a machine that is busy with other tests is slow, not wrong
  const trouble = [];
  tab.on('console', (message) => trouble.push(`${message.type()}: ${message.text()}`));
  tab.on('pageerror', (error) => trouble.push(String(error)));
  tab.on('dialog', (dialog) => {
    trouble.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  tab.on('request', (request) => {
    const own = page.startsWith('http:') && request.url().startsWith(page);
    if (!own && !/^(file|blob|data):/.test(request.url())) trouble.push(`request: ${request.url()}`);
  });
  await tab.goto(page.startsWith('http:') ? page + hash : `file://${page}${hash}`);
  await tab.waitForSelector('canvas, .failure');
  await settle(tab);
  return { tab, trouble };
}

// Another state in the same tab, as a link would do it.
export async function show(tab, hash) {
  await tab.evaluate((next) => {
    location.hash = next;
  }, hash);
  await settle(tab);
}

// Pictures of views in both themes and at two sizes. `views`: name of the picture to the view's part of the hash.
export async function portray(browser, page, views) {
  for (const theme of ['light', 'dark']) {
    for (const [width, height] of kSizes) {
      const { tab, trouble } = await open(browser, page, { theme, width, height });
      for (const [name, hash] of Object.entries(views)) {
        await show(tab, `#v=1&${hash}`);
        await tab.screenshot({ path: join(pictures, `${name}-${theme}-${width}.png`) });
        const over = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (over > 0) trouble.push(`${name}: the page is ${over} pixels too wide`);
        if (width === kSizes[0][0]) trouble.push(...(await seriousFaults(tab)));
        assert.deepEqual(trouble, [], `${name}, ${theme}, ${width}`);
      }
      await tab.close();
    }
  }
}

// What axe finds that is serious or worse, as lines.
export async function seriousFaults(tab) {
  // Evaluated, not added as an element, which the page's policy would refuse.
  await tab.evaluate(readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations } = await tab.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ['violations'] }),
  );
  return violations
    .filter((fault) => ['serious', 'critical'].includes(fault.impact))
    .flatMap((fault) => fault.nodes.map((node) => `${fault.id}: ${node.html} ${node.failureSummary}`));
}

// Two frames: one that the state is rendered in, one that the canvas is drawn in.
export async function settle(tab) {
  await tab.evaluate(
    () =>
      new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30)))),
  );
}
