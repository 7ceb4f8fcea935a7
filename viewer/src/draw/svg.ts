// The same drawings as an SVG file: a context that writes elements. Texts are escaped: they come from a trace.
import type { Context } from './text.ts';

const escaped = (text: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: XML allows no control character, escaped or not
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd');

const round = (value: number) => String(Math.round(value * 100) / 100);

export class SvgContext implements Context {
  fillStyle = '#000000';
  strokeStyle = '#000000';
  lineWidth = 1;
  font = '12px sans-serif';
  textBaseline: CanvasTextBaseline = 'middle';
  textAlign: CanvasTextAlign = 'left';
  globalAlpha = 1;
  private dash: number[] = [];
  private path = '';
  private readonly parts: string[] = [];

  constructor(private readonly measure: (font: string, text: string) => TextMetrics) {}

  private opacity(): string {
    return this.globalAlpha === 1 ? '' : ` opacity="${round(this.globalAlpha)}"`;
  }
  private stroked(): string {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(' ')}"` : '';
    return `fill="none" stroke="${this.strokeStyle}" stroke-width="${round(this.lineWidth)}"${dash}${this.opacity()}`;
  }
  private rectangle(x: number, y: number, width: number, height: number): string {
    return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"`;
  }
  fillRect(x: number, y: number, width: number, height: number): void {
    if (width <= 0 || height <= 0) return;
    this.parts.push(`${this.rectangle(x, y, width, height)} fill="${this.fillStyle}"${this.opacity()}/>`);
  }
  strokeRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(`${this.rectangle(x, y, width, height)} ${this.stroked()}/>`);
  }
  clearRect(): void {}
  fillText(text: string, x: number, y: number): void {
    const anchor = this.textAlign === 'right' ? ' text-anchor="end"' : '';
    const bold = this.font.startsWith('600') ? ' font-weight="600"' : '';
    const size = /(\d+)px/.exec(this.font)?.[1] ?? '12';
    this.parts.push(
      `<text x="${round(x)}" y="${round(y)}" font-size="${size}"${anchor}${bold} fill="${this.fillStyle}"${this.opacity()}>${escaped(text)}</text>`,
    );
  }
  measureText(text: string): TextMetrics {
    return this.measure(this.font, text);
  }
  beginPath(): void {
    this.path = '';
  }
  moveTo(x: number, y: number): void {
    this.path += `M${round(x)} ${round(y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `L${round(x)} ${round(y)}`;
  }
  closePath(): void {
    this.path += 'Z';
  }
  fill(): void {
    this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.opacity()}/>`);
  }
  stroke(): void {
    this.parts.push(`<path d="${this.path}" ${this.stroked()}/>`);
  }
  setLineDash(dash: number[]): void {
    this.dash = dash;
  }
  save(): void {}
  restore(): void {}

  // The file. `title` is what screen readers say.
  finish(width: number, height: number, title: string): string {
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif" dominant-baseline="central" role="img">`,
      `<title>${escaped(title)}</title>`,
      ...this.parts,
      '</svg>\n',
    ].join('\n');
  }
}
