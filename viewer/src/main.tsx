import { render } from 'preact';
import type { Profile } from './data/profile.ts';
import { embeddedProfiles, servedProfiles, servedVersion } from './data/source.ts';
import { App } from './ui/app.tsx';
import './style.css';

function fail(root: HTMLElement, error: unknown): void {
  const text = document.createElement('p');
  text.className = 'failure';
  text.textContent = error instanceof Error ? error.message : String(error);
  root.replaceChildren(text);
}

function show(root: HTMLElement, profiles: Profile[]): void {
  const { arguments: program } = profiles[0].report.program;
  const script = program.find((argument) => argument.endsWith('.py')) ?? program[0] ?? 'trace';
  document.title = `${script.slice(script.lastIndexOf('/') + 1)}: vramtrace`;
  render(<App profiles={profiles} />, root);
}

// A live trace is read anew when its server has read more of it; what is selected stays, in the address.
function follow(root: HTMLElement, version: string): void {
  const kMilliseconds = 1000;
  setTimeout(async () => {
    let next = version;
    try {
      next = await servedVersion();
      if (next !== version) show(root, await servedProfiles());
    } catch {
      return; // the server has ended: the page keeps what it has
    }
    follow(root, next);
  }, kMilliseconds);
}

async function start(): Promise<void> {
  const root = document.getElementById('app') as HTMLElement;
  try {
    if (typeof DecompressionStream === 'undefined') {
      throw new Error(
        'This browser cannot open compressed data. Chrome 80, Firefox 113, Safari 16.4 and newer can.',
      );
    }
    const elements = [...document.querySelectorAll('script.vramtrace-data')];
    const served = elements.length === 0;
    const profiles = served ? await servedProfiles() : await embeddedProfiles(elements);
    root.replaceChildren();
    show(root, profiles);
    // After the frame in which the canvases are drawn.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => setTimeout(() => performance.mark('vramtrace-first-picture'))),
    );
    if (served) follow(root, await servedVersion());
  } catch (error) {
    fail(root, error);
  }
}

void start();
