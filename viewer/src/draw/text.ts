// Fitting text into boxes: a text is measured once for each font.
export type Context = Pick<
  CanvasRenderingContext2D,
  'fillStyle' | 'strokeStyle' | 'lineWidth' | 'font' | 'textBaseline' | 'textAlign' | 'globalAlpha'
> &
  Pick<
    CanvasRenderingContext2D,
    | 'fillRect'
    | 'strokeRect'
    | 'clearRect'
    | 'fillText'
    | 'measureText'
    | 'beginPath'
    | 'moveTo'
    | 'lineTo'
    | 'closePath'
    | 'fill'
    | 'stroke'
    | 'setLineDash'
    | 'save'
    | 'restore'
  >;

const kWidths = new Map<string, number>();

export function textWidth(context: Context, text: string): number {
  const key = `${context.font}\n${text}`;
  let width = kWidths.get(key);
  if (width === undefined) {
    if (kWidths.size > 50_000) kWidths.clear();
    width = context.measureText(text).width;
    kWidths.set(key, width);
  }
  return width;
}

// The text, or its beginning and end around "…", or nothing when not even three characters fit.
export function fitText(context: Context, text: string, width: number): string {
  if (text === '' || width < 16) return '';
  if (textWidth(context, text) <= width) return text;
  // The end of a dotted path says most, the beginning of a sentence does.
  const head = text.includes(' ') ? 0.65 : 0.3;
  let low = 0;
  let high = text.length;
  const cut = (kept: number) => {
    const first = Math.round(kept * head);
    return `${text.slice(0, first)}…${text.slice(text.length - (kept - first))}`;
  };
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(context, cut(middle)) <= width) low = middle;
    else high = middle - 1;
  }
  return low < 3 ? '' : cut(low);
}
