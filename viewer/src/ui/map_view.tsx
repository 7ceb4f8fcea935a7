import { useMemo, useState } from 'preact/hooks';
import { grouped, share, size } from '../data/format.ts';
import { type BlockIndex, blockBytes, blockName, type Profile } from '../data/profile.ts';
import { matchesText, wordsOf } from '../data/search.ts';
import { blockBeside, type Piece, pinsOf, type SegmentMap, segmentsAt } from '../data/segments.ts';
import { drawMap, kMapRow, pieceUnder } from '../draw/map.ts';
import type { Context } from '../draw/text.ts';
import { BlockFacts } from './block_facts.tsx';
import { canvasStyle, pointOn, SaveButtons, useDrawing, useWidth } from './canvas.tsx';
import type { Model } from './model.ts';
import { Tooltip } from './tooltip.tsx';

export function MapView({ model }: { model: Model }) {
  const { profile, device, shownTick, theme, state, update } = model;
  const [holder, width] = useWidth(900);
  const [hover, setHover] = useState<
    { map: SegmentMap; piece: Piece | undefined; x: number; y: number } | undefined
  >();
  const maps = useMemo(
    () => segmentsAt(profile, device, shownTick).sort((a, b) => b.bytes - a.bytes || a.address - b.address),
    [profile, device, shownTick],
  );
  const height = Math.max(1, maps.length) * kMapRow;
  const words = useMemo(() => wordsOf(state.search), [state.search]);
  const found = (block: BlockIndex) => matchesText(words, textOf(profile, block));
  const matching = useMemo(
    () =>
      words.length === 0
        ? []
        : maps
            .flatMap((map) => map.pieces.map((piece) => piece.block))
            .filter((block) => block >= 0 && found(block)),
    [maps, words],
  );
  const matchingBytes = matching.reduce((sum, block) => sum + blockBytes(profile, block), 0);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!['ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowUp'].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    const block = blockBeside(maps, state.block, event.key);
    if (block >= 0) update({ block }, 'replace');
  };
  const draw = (context: Context) =>
    drawMap(context, {
      profile,
      maps,
      theme,
      width,
      height,
      selected: state.block,
      hidden: model.hidden,
      name: (block) => blockName(profile, block),
      note: (map) => noteOf(profile, map),
      found: words.length > 0 ? found : undefined,
    });
  const canvas = useDrawing(width, height, draw);
  const under = (event: MouseEvent) => {
    const { x, y } = pointOn(canvas.current, event);
    return pieceUnder({ maps, width }, x, y);
  };
  const caching = maps.filter((map) => map.caching);
  const reserved = caching.reduce((sum, map) => sum + map.bytes, 0);
  const live = caching.reduce((sum, map) => sum + map.live, 0);
  const whole = caching.filter((map) => map.live === 0).reduce((sum, map) => sum + map.bytes, 0);
  return (
    <div class="map">
      <div class="bar">
        <span>
          {grouped(caching.length)} segments hold {size(reserved)}; {size(reserved - live)} of it is free
          inside them ({share(reserved - live, reserved)}), {size(whole)} in segments without a live block
        </span>
        <span class="grow" />
        {words.length > 0 && (
          <span class="found" role="status">
            {grouped(matching.length)} found, {size(matchingBytes)}
          </span>
        )}
        <SaveButtons
          picture={{ name: 'vramtrace-segments', title: 'map of segments', width, height, canvas, draw }}
        />
      </div>
      <div ref={holder} class="canvas-holder scroller">
        <canvas
          ref={canvas}
          role="img"
          tabIndex={0}
          aria-label={`Map of ${caching.length} segments. Arrow keys go from block to block.${state.block >= 0 ? ` ${blockName(profile, state.block)}` : ''}`}
          onKeyDown={onKeyDown}
          style={canvasStyle(width, height)}
          onMouseMove={(event) => {
            const found = under(event);
            setHover(found && { ...found, x: event.clientX, y: event.clientY });
          }}
          onMouseLeave={() => setHover(undefined)}
          onClick={(event) => {
            const block = under(event)?.piece?.block ?? -1;
            if (block >= 0) update({ block }, 'replace');
          }}
        />
      </div>
      {hover !== undefined && (
        <Tooltip x={hover.x} y={hover.y}>
          {hover.piece === undefined || hover.piece.block < 0 ? (
            <>
              <strong>
                {hover.piece === undefined ? size(hover.map.bytes) : `${size(hover.piece.bytes)} free`}
              </strong>
              <div class="faint">
                segment of {size(hover.map.bytes)} at 0x{hover.map.address.toString(16)}
                {hover.map.caching ? '' : `, taken by ${hover.map.caller || 'an unknown library'}`}
              </div>
              <Pins profile={profile} map={hover.map} />
            </>
          ) : (
            <>
              <BlockFacts model={model} block={hover.piece.block} />
              <Pins profile={profile} map={hover.map} />
            </>
          )}
        </Tooltip>
      )}
    </div>
  );
}

// What a search looks at.
function textOf(profile: Profile, block: BlockIndex): string {
  const kind = profile.blocks.kind[block];
  const memoryClass = profile.classes[profile.kinds.class[kind]].words;
  return `${blockName(profile, block)} ${memoryClass} ${profile.strings[profile.kinds.module[kind]]}`;
}

// Right of a segment's row: how much of it is live, and what keeps it from going back to the driver.
function noteOf(profile: Profile, map: SegmentMap): string {
  if (!map.caching) return map.caller;
  const pins = pinsOf(profile, map);
  if (pins.length === 0) return 'free: could go back to the driver';
  const more = pins.length > 1 ? ` and ${grouped(pins.length - 1)} more` : '';
  return `${share(map.live, map.bytes)} live, pinned by ${blockName(profile, pins[0])}${more}`;
}

function Pins({ profile, map }: { profile: Profile; map: SegmentMap }) {
  const pins = pinsOf(profile, map);
  if (!map.caching || pins.length === 0) return null;
  return (
    <div class="pins">
      <strong>What pins this segment</strong>
      <div class="faint">
        {size(map.live)} live of {size(map.bytes)}; the rest can be used again by PyTorch, but goes back to
        the driver only when all of these are gone:
      </div>
      <table class="facts">
        <tbody>
          {pins.slice(0, 5).map((block) => (
            <tr key={block}>
              <td class="number">{size(blockBytes(profile, block))}</td>
              <td class="wrap">{blockName(profile, block)}</td>
              <td class="faint">{profile.classes[profile.kinds.class[profile.blocks.kind[block]]].words}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {pins.length > 5 && <div class="faint">and {grouped(pins.length - 5)} more</div>}
    </div>
  );
}
