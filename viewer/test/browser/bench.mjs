// Figures of a page: node bench.mjs PAGE|ADDRESS. One line of JSON; times are medians in milliseconds.
import { readdirSync, readFileSync } from 'node:fs';
import { launch, settle } from './page.mjs';

const kTurns = 7;
const [page] = process.argv.slice(2);
const browser = await launch();
const tab = await browser.newPage({ viewport: { width: 1440, height: 900 } });
tab.setDefaultTimeout(300_000);
await tab.goto(page.startsWith('http:') ? page : `file://${page}`);
await tab.waitForFunction(() => performance.getEntriesByName('vramtrace-first-picture').length > 0);
const first = await tab.evaluate(() => performance.getEntriesByName('vramtrace-first-picture')[0].startTime);
await settle(tab);

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

// From a change of the state to the end of the frame that shows it, blocks from a server included.
const redraw = (hash) =>
  tab.evaluate(
    (next) =>
      new Promise((done) => {
        const started = performance.now();
        const drawn = () => {
          if (document.querySelector('header [role=status]') !== null) return setTimeout(drawn, 1);
          requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - started)));
        };
        location.hash = next;
        // The event that the page listens to comes first, then its rendering.
        addEventListener('hashchange', () => setTimeout(drawn), { once: true });
      }),
    hash,
  );

const ticks = await tab.evaluate(() => Number(document.querySelector('.timeline').dataset.ticks));
const select = [];
const search = [];
for (let i = 1; i <= kTurns; ++i) {
  const tick = Math.floor((ticks * (i + 0.37)) / (kTurns + 2));
  select.push(await redraw(`#v=1&t=${tick}`));
  search.push(await redraw(`#v=1&t=${tick}&q=${i % 2 === 0 ? 'attention' : 'mlp'}`));
}
const memory = await tab.evaluate(async () => {
  const { usedJSHeapSize } = performance.memory;
  return usedJSHeapSize;
});
const devtools = await tab.context().newCDPSession(tab);
await devtools.send('HeapProfiler.collectGarbage');
await devtools.send('Performance.enable');
const { metrics } = await devtools.send('Performance.getMetrics');
const heap = metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? memory;
console.log(
  JSON.stringify({
    first_picture_ms: first,
    select_ms: median(select),
    search_ms: median(search),
    js_heap_bytes: heap,
    renderer_bytes: rendererBytes(),
  }),
);
await browser.close();

// What the renderer processes of this browser hold of their own (private memory), the largest of them: the tab.
function rendererBytes() {
  let most = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (!command.includes('--type=renderer') || !isOurs(pid)) continue;
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
      const kib = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(rollup)?.[1] ?? 0);
      most = Math.max(most, 1024 * (kib('Private_Dirty') + kib('Private_Clean')));
    } catch {} // it has ended
  }
  return most;
}

function isOurs(pid) {
  for (let at = Number(pid); at > 1; ) {
    if (at === process.pid) return true;
    at = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${at}/status`, 'utf8'))?.[1] ?? 0);
  }
  return false;
}
