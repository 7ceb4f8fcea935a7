// The tree of modules with what belongs to each: parameters, gradients, optimizer states, activations.
import type { Groups } from './live.ts';
import type { Bytes, Profile } from './profile.ts';
import { modulePathOf } from './tree.ts';

export const kModuleColumns = [
  'weight',
  'gradient',
  'optimizer_state',
  'activation',
  'temporary',
  'other',
] as const;

export interface ModuleRow {
  path: string;
  label: string;
  class: string;
  depth: number;
  children: number;
  bytes: Float64Array; // by kModuleColumns, with the modules below
  total: Bytes;
}

interface Draft {
  class: string;
  bytes: Float64Array;
  children: Map<string, Draft>;
}

function columnOf(key: string): number {
  const column = (kModuleColumns as readonly string[]).indexOf(key);
  return column < 0 ? kModuleColumns.length - 1 : column;
}

// Depth first, children in the order of their names ("h.2" before "h.10"). Without `open` only the root's rows.
export function moduleRows(profile: Profile, groups: Groups, open: ReadonlySet<string>): ModuleRow[] {
  const draft = (): Draft => ({
    class: '',
    bytes: new Float64Array(kModuleColumns.length),
    children: new Map(),
  });
  const root = draft();
  const outside = draft();
  const { kinds, classes, strings } = profile;
  groups.kinds.forEach((kind, group) => {
    const bytes = groups.bytes[group];
    const path = modulePathOf(profile, kind);
    const column = columnOf(classes[kinds.class[kind]].key);
    let at = path === undefined ? outside : root;
    at.bytes[column] += bytes;
    for (const part of path ? path.split('.') : []) {
      let child = at.children.get(part);
      if (child === undefined) {
        child = draft();
        at.children.set(part, child);
      }
      child.bytes[column] += bytes;
      at = child;
    }
    if (path === strings[kinds.module[kind]] && path !== undefined)
      at.class = strings[kinds.module_class[kind]];
  });
  const found: ModuleRow[] = [];
  const order = new Intl.Collator('en', { numeric: true });
  const pending = [
    { draft: outside, path: ' outside', label: 'outside of modules', depth: 0 },
    { draft: root, path: '', label: 'model', depth: 0 },
  ];
  while (pending.length > 0) {
    const { draft: at, path, label, depth } = pending.pop() as (typeof pending)[number];
    const total = at.bytes.reduce((sum, bytes) => sum + bytes, 0);
    if (total === 0 && depth === 0) continue;
    found.push({ path, label, class: at.class, depth, children: at.children.size, bytes: at.bytes, total });
    if (!open.has(path)) continue;
    const children = [...at.children].sort(([a], [b]) => order.compare(b, a));
    for (const [name, child] of children) {
      pending.push({
        draft: child,
        path: path === '' ? name : `${path}.${name}`,
        label: name,
        depth: depth + 1,
      });
    }
  }
  return found;
}
