// A canvas that fills its parent's width, redrawn once a frame at the screen's own resolution.

import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

export function useWidth(initial: number): [RefObject<HTMLDivElement | null>, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(initial);
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const read = () => setWidth(Math.max(200, Math.floor(element.clientWidth)));
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
  draw: (context: CanvasRenderingContext2D) => void,
): RefObject<HTMLCanvasElement | null> {
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      const canvas = ref.current;
      const context = canvas?.getContext('2d', { alpha: false });
      if (!canvas || !context) return;
      const ratio = devicePixelRatio || 1;
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

// The picture as a PNG file.
export function savePicture(canvas: HTMLCanvasElement | null, name: string): void {
  canvas?.toBlob((blob) => {
    if (blob !== null) saveFile(blob, name);
  });
}

export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
