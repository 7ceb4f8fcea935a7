// Colours of the drawings. The classes' are Okabe and Ito's palette, safe for colour-blind readers, with five more
// of Tol's muted set for rare classes; areas also carry their name where it fits, so colour never stands alone.

export interface Theme {
  dark: boolean;
  background: string;
  text: string;
  faint: string;
  line: string;
  grid: string;
  merged: string;
  dimmed: string;
  accent: string;
  danger: string;
  classes: Record<string, string>;
}

const kClasses: Record<string, string> = {
  weight: '#0072B2',
  buffer: '#6699CC',
  gradient: '#009E73',
  optimizer_state: '#E69F00',
  activation: '#D55E00',
  temporary: '#56B4E9',
  input: '#F0E442',
  output: '#CC79A7',
  workspace: '#999933',
  communication: '#44AA99',
  save_copy: '#AA4499',
  unknown: '#8A8F98',
  rounding: '#C3C7CE',
};

export const kLight: Theme = {
  dark: false,
  background: '#ffffff',
  text: '#1b1f24',
  faint: '#656d76',
  line: '#d0d7de',
  grid: '#e8ebef',
  merged: '#d5d9df',
  dimmed: '#e9ebee',
  accent: '#0b57d0',
  danger: '#b3261e',
  classes: kClasses,
};

export const kDark: Theme = {
  dark: true,
  background: '#14171c',
  text: '#e6e9ee',
  faint: '#98a1ad',
  line: '#363d47',
  grid: '#252a32',
  merged: '#3a414c',
  dimmed: '#262b33',
  accent: '#8ab4f8',
  danger: '#ff8a80',
  classes: { ...kClasses, weight: '#3D9BDC', activation: '#E8743B', unknown: '#7D8590', rounding: '#59616C' },
};

// Growth towards vermilion, shrinkage towards blue: Okabe and Ito's pair that every reader can tell apart.
// `change`: -1 to 1, the part of a box that is new or gone.
export function changeColor(theme: Theme, change: number): string {
  const target = change > 0 ? [213, 94, 0] : [0, 114, 178];
  const base = theme.dark ? [58, 65, 76] : [226, 229, 234];
  const part = change === 0 ? 0 : Math.min(1, 0.3 + 0.7 * Math.abs(change));
  const mixed = base.map((value, i) => Math.round(value + (target[i] - value) * part));
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

// From the bottom of the stack up: what stays for the whole run first, so that what comes and goes lies on top.
export const kStackOrder = [
  'weight',
  'buffer',
  'optimizer_state',
  'gradient',
  'activation',
  'save_copy',
  'output',
  'input',
  'communication',
  'workspace',
  'temporary',
  'unknown',
  'rounding',
];

export function classColor(theme: Theme, key: string): string {
  return theme.classes[key] ?? theme.classes.unknown;
}

// Black or white, whichever is easier to read on the colour (WCAG's relative luminance).
const kTextOn = new Map<string, string>();
export function textOn(color: string): string {
  const known = kTextOn.get(color);
  if (known !== undefined) return known;
  const channel = (at: number) => {
    const value = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
  const text = luminance > 0.179 ? '#101418' : '#ffffff';
  kTextOn.set(color, text);
  return text;
}

export const kFont = '12px system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';
export const kBoldFont = `600 ${kFont}`;
export const kSmallFont = kFont.replace('12px', '11px');
