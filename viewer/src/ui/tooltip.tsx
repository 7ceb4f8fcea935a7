import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

// Next to the pointer, inside the window.
export function Tooltip(props: { x: number; y: number; children: ComponentChildren }) {
  const ref = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ left: props.x + 14, top: props.y + 14 });
  useLayoutEffect(() => {
    const box = ref.current?.getBoundingClientRect();
    if (box === undefined) return;
    const left =
      props.x + 14 + box.width > innerWidth - 8 ? Math.max(8, props.x - 14 - box.width) : props.x + 14;
    const top =
      props.y + 14 + box.height > innerHeight - 8 ? Math.max(8, props.y - 14 - box.height) : props.y + 14;
    if (left !== place.left || top !== place.top) setPlace({ left, top });
  });
  return (
    <div ref={ref} class="tooltip" role="tooltip" style={{ left: `${place.left}px`, top: `${place.top}px` }}>
      {props.children}
    </div>
  );
}
