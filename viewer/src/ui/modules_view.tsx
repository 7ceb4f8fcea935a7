import { useMemo } from 'preact/hooks';
import { share, size } from '../data/format.ts';
import type { Groups } from '../data/live.ts';
import { kModuleColumns, moduleRows } from '../data/modules.ts';
import type { Profile } from '../data/profile.ts';
import { matchesText, wordsOf } from '../data/search.ts';
import { classColor } from '../draw/theme.ts';
import type { Model } from './model.ts';

const kWords: Record<string, string> = {
  weight: 'parameters',
  gradient: 'gradients',
  optimizer_state: 'optimizer state',
  activation: 'activations',
  temporary: 'temporaries',
  other: 'other',
};

// Down to where the memory divides.
function openedAtFirst(profile: Profile, groups: Groups): Set<string> {
  const open = new Set(['']);
  for (let level = 0; level < 4; ++level) {
    const found = moduleRows(profile, groups, open);
    const whole = found[0]?.total ?? 0;
    const large = found.find((row) => row.children > 0 && !open.has(row.path) && row.total > 0.4 * whole);
    if (large === undefined) break;
    open.add(large.path);
  }
  return open;
}

export function ModulesView({ model }: { model: Model }) {
  const { profile, theme, state } = model;
  const { groups } = model.selected;
  const first = useMemo(() => openedAtFirst(profile, groups), [profile]);
  const open = useMemo(
    () => (state.opened[0] === '*' ? first : new Set(state.opened.map((path) => path.slice(1)))),
    [first, state.opened.join('/')],
  );
  const found = useMemo(() => moduleRows(profile, groups, open), [profile, groups, open]);
  const words = wordsOf(state.search);
  const whole = model.totals.tensorBytes;
  const toggle = (path: string) => {
    const next = new Set(open);
    if (!next.delete(path)) next.add(path);
    model.update({ opened: [...next].map((other) => `.${other}`) });
  };
  return (
    <div class="modules scroller" tabIndex={0} role="region" aria-label="Modules">
      {words.length > 0 && (
        <p class="found" role="status">
          {found.filter((row) => matchesText(words, `${row.path} ${row.class}`)).length} of {found.length}{' '}
          open rows found
        </p>
      )}
      <table role="treegrid" aria-label="Modules">
        <thead>
          <tr>
            <th>module</th>
            <th class="number">together</th>
            <th>share</th>
            {kModuleColumns.map((key) => (
              <th key={key} class="number">
                <span
                  class="swatch"
                  style={{ background: key === 'other' ? theme.faint : classColor(theme, key) }}
                />{' '}
                {kWords[key]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {found.map((row) => {
            const dim = words.length > 0 && !matchesText(words, `${row.path} ${row.class}`);
            return (
              <tr
                key={row.path}
                class={dim ? 'dim' : ''}
                aria-level={row.depth + 1}
                {...(row.children > 0 ? { 'aria-expanded': open.has(row.path) } : {})}
              >
                <td class="module-name" style={{ paddingLeft: `${8 + row.depth * 18}px` }}>
                  {row.children > 0 ? (
                    <button
                      type="button"
                      class="toggle"
                      aria-label={`${open.has(row.path) ? 'Close' : 'Open'} ${row.label}`}
                      onClick={() => toggle(row.path)}
                    >
                      {open.has(row.path) ? '▾' : '▸'}
                    </button>
                  ) : (
                    <span class="toggle" />
                  )}
                  {row.label} <span class="faint">{row.class}</span>
                </td>
                <td class="number">
                  <strong>{size(row.total)}</strong>
                </td>
                <td>
                  <span class="share-bar" title={share(row.total, whole)}>
                    {[...row.bytes].map((bytes, i) => (
                      <span
                        key={kModuleColumns[i]}
                        style={{
                          width: `${whole > 0 ? (100 * bytes) / whole : 0}%`,
                          background:
                            kModuleColumns[i] === 'other'
                              ? theme.faint
                              : classColor(theme, kModuleColumns[i]),
                        }}
                      />
                    ))}
                  </span>
                </td>
                {[...row.bytes].map((bytes, i) => (
                  <td key={kModuleColumns[i]} class="number">
                    {bytes === 0 ? '' : size(bytes)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
