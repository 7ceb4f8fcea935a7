import { useEffect, useRef } from 'preact/hooks';

const kKeys: [string, string][] = [
  ['1 2 3 4', 'flame graph, blocks, modules, segments; 5 and 6: ranks and difference, where there are any'],
  ['← →', 'the event before or after; with Shift a hundred'],
  ['r', 'begin a range at the selected event; the arrows then move its end, r again ends it'],
  ['p', 'the peak, or where memory ran out'],
  ['+ −', 'zoom the timeline around the selected event; 0 shows the whole run'],
  ['s m c', 'flame graph by stack, module, class'],
  ['i', 'inverted: innermost first'],
  ['/', 'search; Escape clears it'],
  ['n N', 'the next box found, or the one before'],
  ['x', 'events or time along the axis'],
  ['t', 'light or dark'],
  ['?', 'this list'],
  ['in the flame graph and the difference', 'arrows move, Enter zooms, Backspace goes back'],
  ['in the segments', 'arrows go from block to block'],
  ['in the blocks', 'up and down go from row to row'],
  [
    'with the mouse',
    'click the timeline: an instant; drag: a range; Ctrl and wheel: zoom. Click a box: zoom',
  ],
];

export function Help({ close }: { close: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => ref.current?.showModal(), []);
  return (
    <dialog
      ref={ref}
      aria-label="Keys"
      onClose={close}
      onClick={(event) => event.target === ref.current && close()}
    >
      <div class="dialog">
        <div class="bar">
          <h2>Keys</h2>
          <span class="grow" />
          <button type="button" onClick={close}>
            close
          </button>
        </div>
        <dl>
          {kKeys.map(([key, words]) => (
            <>
              <dt key={key}>{key}</dt>
              <dd>{words}</dd>
            </>
          ))}
        </dl>
        <p class="faint">
          Everything that is set stands in the page's address: reload, go back, or send it along. “allocated”
          is what tensors take in PyTorch's caching allocator; “reserved” is what the allocator took from the
          driver; “device used” is everything on the device.
        </p>
      </div>
    </dialog>
  );
}
