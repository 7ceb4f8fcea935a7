// The map of segments: a row each, as wide as it is large, with its blocks and holes.

import { size } from '../data/format.ts';
import type { MemoryClass, Profile } from '../data/profile.ts';
import type { Piece, SegmentMap } from '../data/segments.ts';
import { type Context, fitText } from './text.ts';
import { classColor, kSmallFont, type Theme, textOn } from './theme.ts';

export const kMapRow = 18;
const kLabel = 74;
const kNote = 330; // what pins the segment, at the right

export interface MapScene {
  profile: Profile;
  maps: readonly SegmentMap[];
  theme: Theme;
  width: number;
  height: number;
  selected: number; // block; -1: none
  hidden: ReadonlySet<number>;
  name: (block: number) => string;
  note: (map: SegmentMap) => string;
  found?: ((block: number) => boolean) | undefined; // by a search: the others are dimmed
}

interface Scale {
  left: number;
  perByte: number;
}

function scaleOf(scene: Pick<MapScene, 'maps' | 'width'>): Scale {
  const widest = scene.maps.reduce((most, map) => Math.max(most, map.bytes), 1);
  return { left: kLabel, perByte: Math.max(80, scene.width - kLabel - kNote - 16) / widest };
}

export function pieceUnder(
  scene: Pick<MapScene, 'maps' | 'width'>,
  x: number,
  y: number,
): { map: SegmentMap; piece: Piece | undefined } | undefined {
  const map = scene.maps[Math.floor(y / kMapRow)];
  if (map === undefined) return undefined;
  const { left, perByte } = scaleOf(scene);
  const offset = (x - left) / perByte;
  return {
    map,
    piece: map.pieces.find((piece) => offset >= piece.offset && offset < piece.offset + piece.bytes),
  };
}

export function drawMap(context: Context, scene: MapScene): void {
  const { theme, maps, profile } = scene;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, scene.width, scene.height);
  context.font = kSmallFont;
  context.textBaseline = 'middle';
  const { left, perByte } = scaleOf(scene);
  maps.forEach((map, row) => {
    const top = row * kMapRow;
    const tall = kMapRow - 3;
    context.textAlign = 'right';
    context.fillStyle = theme.text;
    context.fillText(size(map.bytes), left - 8, top + tall / 2);
    context.textAlign = 'left';
    context.fillStyle = theme.faint;
    context.fillText(fitText(context, scene.note(map), kNote), scene.width - kNote, top + tall / 2);
    const width = Math.max(1, map.bytes * perByte);
    context.fillStyle = map.caching ? theme.grid : classColor(theme, 'unknown');
    context.fillRect(left, top, width, tall);
    let drawn = left - 1; // pieces narrower than a pixel are drawn once a pixel
    for (const piece of map.pieces) {
      if (piece.block < 0) continue;
      const x = left + piece.offset * perByte;
      const end = x + piece.bytes * perByte;
      if (end < drawn + 0.75) continue;
      drawn = Math.max(end, x + 0.75);
      drawPiece(
        context,
        scene,
        profile.classes,
        piece,
        x,
        Math.max(0.75, end - x - (end - x > 3 ? 1 : 0)),
        top,
        tall,
      );
    }
  });
}

function drawPiece(
  context: Context,
  scene: MapScene,
  classes: readonly MemoryClass[],
  piece: Piece,
  x: number,
  width: number,
  top: number,
  tall: number,
): void {
  const band = scene.profile.kinds.class[scene.profile.blocks.kind[piece.block]];
  const dimmed = scene.hidden.has(band) || scene.found?.(piece.block) === false;
  const color = dimmed ? scene.theme.dimmed : classColor(scene.theme, classes[band].key);
  context.fillStyle = color;
  context.fillRect(x, top, width, tall);
  if (piece.block === scene.selected) {
    context.strokeStyle = scene.theme.text;
    context.lineWidth = 2;
    context.strokeRect(x + 1, top + 1, Math.max(1, width - 2), tall - 2);
  }
  const text = width > 30 ? fitText(context, scene.name(piece.block), width - 6) : '';
  if (text === '') return;
  context.fillStyle = dimmed ? scene.theme.faint : textOn(color);
  context.fillText(text, x + 3, top + tall / 2 + 0.5);
}
