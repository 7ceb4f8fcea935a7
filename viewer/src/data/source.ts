// Where profiles come from: elements of the page, or the server that the page came from (analyzer/viewer_data/serve.h).
import { decompress, openContainer } from './container.ts';
import type { Mode, Selection } from './live.ts';
import { type BlockTable, blocksOf, type Profile, profileOf } from './profile.ts';

export async function embeddedProfiles(elements: readonly Element[]): Promise<Profile[]> {
  const profiles: Profile[] = [];
  for (const element of elements) {
    const base64 = element.textContent ?? '';
    element.remove();
    profiles.push(profileOf(openContainer(await decompress(base64))));
  }
  return profiles;
}

async function get(path: string): Promise<Response> {
  const response = await fetch(path);
  if (!response.ok)
    throw new Error(`vramtrace view --serve answered ${response.status}: ${await response.text()}`);
  return response;
}

export async function servedProfiles(): Promise<Profile[]> {
  const count = Number(await (await get('traces')).text());
  const profiles: Profile[] = [];
  for (let i = 0; i < count; ++i)
    profiles.push(profileOf(openContainer(await (await get(`trace/${i}`)).arrayBuffer())));
  return profiles;
}

export async function servedVersion(): Promise<string> {
  return (await get('version')).text();
}

// The blocks of a selection of a trace whose blocks are not all in the page; `seen`: those that live at any time
// between two ticks.
export async function servedBlocks(
  trace: number,
  asked: Omit<Selection, 'mode'> & { mode: Mode | 'seen' },
): Promise<BlockTable> {
  const { device, mode, from, to } = asked;
  const response = await get(`trace/${trace}/blocks?device=${device}&mode=${mode}&from=${from}&to=${to}`);
  return blocksOf(openContainer(await response.arrayBuffer()));
}
