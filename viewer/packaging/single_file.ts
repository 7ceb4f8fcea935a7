// Puts the bundle into index.html: one file that opens from file://, under a policy that lets nothing else run.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Plugin } from 'vite';

function hash(text: string): string {
  return `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;
}

export function policy(script: string, style: string): string {
  return [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    'img-src blob: data:',
    "base-uri 'none'",
    "form-action 'none'",
  ]
    .join('; ')
    .concat('@VRAMTRACE_SOURCES@'); // `vramtrace view --serve` lets the page ask its own server
}

export function singleFile(template: string): Plugin {
  return {
    name: 'vramtrace-single-file',
    enforce: 'post',
    generateBundle(_options, bundle) {
      let script = '';
      let style = '';
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === 'chunk') script += part.code;
        else if (name.endsWith('.css')) style += String(part.source);
        else this.error(`${name}: the page has no place for it`);
        delete bundle[name];
      }
      // The parser ends an element at its end tag, wherever that stands.
      script = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
      if (style.includes('</style')) this.error('the style sheet holds its own end tag');
      const page = readFileSync(template, 'utf8')
        .replace('@POLICY@', () => policy(script, style))
        .replace('@STYLE@', () => style)
        .replace('@SCRIPT@', () => script);
      this.emitFile({ type: 'asset', fileName: 'index.html', source: page });
    },
  };
}
