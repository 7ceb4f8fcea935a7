const kTyping = new Set(['INPUT', 'SELECT', 'TEXTAREA']);

// A key that is meant for a field, or for the browser.
export function isTyping(event: KeyboardEvent): boolean {
  const { tagName } = event.target as HTMLElement;
  return event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || kTyping.has(tagName);
}
