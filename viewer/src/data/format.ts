// Numbers for people, as analyzer/report/units.cpp writes them.
import type { Bytes } from './profile.ts';

const kKiB = 1024;
const kMiB = kKiB * 1024;
const kGiB = kMiB * 1024;

export function size(bytes: Bytes): string {
  const sign = bytes < 0 ? '-' : '';
  const value = Math.abs(bytes);
  if (value >= kGiB - kMiB / 20) return `${sign}${(value / kGiB).toFixed(2)} GiB`;
  if (value >= kMiB - kKiB / 20) return `${sign}${(value / kMiB).toFixed(1)} MiB`;
  if (value >= kKiB) return `${sign}${(value / kKiB).toFixed(1)} KiB`;
  return `${sign}${value} B`;
}

export function grouped(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

export function share(part: number, whole: number): string {
  return whole <= 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`;
}

export function duration(ns: number): string {
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(3)} s`;
  if (ns >= 1e6) return `${(ns / 1e6).toFixed(3)} ms`;
  return `${(ns / 1e3).toFixed(1)} µs`;
}

// "+1.50 MiB", "-3 B": a difference.
export function signed(bytes: Bytes): string {
  return bytes > 0 ? `+${size(bytes)}` : size(bytes);
}
