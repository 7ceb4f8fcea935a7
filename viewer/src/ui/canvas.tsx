// A canvas that fills its parent's width, redrawn once a frame at the screen's own resolution.

import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { SvgContext } from '../draw/svg.ts';
import type { Context } from '../draw/text.ts';

// How much larger drawings are than their own pixels: texts of 12 pixels cannot be read across a room-wide screen.
export const drawingScale = () => (innerWidth >= 2400 ? 1.4 : 1);

export function canvasStyle(width: number, height: number): { width: string; height: string } {
  return { width: `${width * drawingScale()}px`, height: `${height * drawingScale()}px` };
}

// Where a pointer is on a drawing, in the drawing's own pixels.
export function pointOn(
  canvas: HTMLCanvasElement | null,
  event: { clientX: number; clientY: number },
): { x: number; y: number } {
  const place = canvas?.getBoundingClientRect();
  return {
    x: (event.clientX - (place?.left ?? 0)) / drawingScale(),
    y: (event.clientY - (place?.top ?? 0)) / drawingScale(),
  };
}

// The width that a drawing has, in its own pixels.
export function useWidth(initial: number): [RefObject<HTMLDivElement | null>, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(initial);
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const read = () => setWidth(Math.max(200, Math.floor(element.clientWidth / drawingScale())));
    read();
    const observer = new ResizeObserver(read);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

export function useDrawing(
  width: number,
  height: number,
  draw: (context: Context) => void,
): RefObject<HTMLCanvasElement | null> {
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      const canvas = ref.current;
      const context = canvas?.getContext('2d', { alpha: false });
      if (!canvas || !context) return;
      const ratio = (devicePixelRatio || 1) * drawingScale();
      const [deviceWidth, deviceHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
      if (canvas.width !== deviceWidth || canvas.height !== deviceHeight) {
        canvas.width = deviceWidth;
        canvas.height = deviceHeight;
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      draw(context);
    });
    return () => cancelAnimationFrame(frame);
  });
  return ref;
}

export interface Picture {
  name: string; // of the file, without its ending
  title: string;
  width: number;
  height: number;
  canvas: RefObject<HTMLCanvasElement | null>;
  draw: (context: Context) => void;
}

// The picture as it is shown, as a PNG or an SVG file.
export function SaveButtons({ picture }: { picture: Picture }) {
  const { name, width, height, canvas, draw } = picture;
  const savePng = () =>
    canvas.current?.toBlob((blob) => {
      if (blob !== null) saveFile(blob, `${name}.png`);
    });
  const saveSvg = () => {
    const measuring = document.createElement('canvas').getContext('2d');
    if (measuring === null) return;
    const context = new SvgContext((font, text) => {
      measuring.font = font;
      return measuring.measureText(text);
    });
    draw(context);
    const file = context.finish(width, height, picture.title);
    saveFile(new Blob([file], { type: 'image/svg+xml' }), `${name}.svg`);
  };
  return (
    <span class="segmented" role="group" aria-label={`Save the ${picture.title}`}>
      <button type="button" onClick={savePng}>
        save PNG
      </button>
      <button type="button" onClick={saveSvg}>
        SVG
      </button>
    </span>
  );
}

export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
