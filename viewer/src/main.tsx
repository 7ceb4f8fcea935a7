import { render } from 'preact';
import { decompress, openContainer } from './data/container.ts';
import { profileOf } from './data/profile.ts';
import { App } from './ui/app.tsx';
import './style.css';

function fail(root: HTMLElement, error: unknown): void {
  const text = document.createElement('p');
  text.className = 'failure';
  text.textContent = error instanceof Error ? error.message : String(error);
  root.replaceChildren(text);
}

async function start(): Promise<void> {
  const root = document.getElementById('app') as HTMLElement;
  try {
    if (typeof DecompressionStream === 'undefined') {
      throw new Error(
        'This browser cannot open compressed data. Chrome 80, Firefox 113, Safari 16.4 and newer can.',
      );
    }
    const element = document.getElementById('vramtrace-data') as HTMLElement;
    const base64 = element.textContent ?? '';
    element.remove();
    const profile = profileOf(openContainer(await decompress(base64)));
    const program = profile.report.program.arguments;
    const script = program.find((argument) => argument.endsWith('.py')) ?? program[0] ?? 'trace';
    document.title = `${script.slice(script.lastIndexOf('/') + 1)}: vramtrace`;
    root.replaceChildren();
    render(<App profile={profile} />, root);
    performance.mark('vramtrace-first-picture');
  } catch (error) {
    fail(root, error);
  }
}

void start();
