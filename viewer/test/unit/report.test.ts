// The types of data/report.ts against the schema that the analyzer fills: every field is there, with that kind.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const withoutComments = (text: string) => text.replace(/\/\/.*$/gm, '');

// Message to field to "number", "string", "boolean" or a message's name, with [] where it is repeated.
function schema(text: string): Map<string, Map<string, string>> {
  const messages = new Map<string, Map<string, string>>();
  const kinds: Record<string, string> = { string: 'string', bool: 'boolean' };
  for (const [, name, body] of withoutComments(text).matchAll(/^message (\w+) \{([^}]*)\}/gm)) {
    const fields = new Map<string, string>();
    for (const [, repeated, type, field] of body.matchAll(/(repeated )?(?:optional )?(\w+) (\w+) = \d+;/g)) {
      const kind = /^(u?int|double|float|sint|fixed)/.test(type) ? 'number' : (kinds[type] ?? type);
      fields.set(field, kind + (repeated ? '[]' : ''));
    }
    messages.set(name, fields);
  }
  return messages;
}

interface Field {
  name: string;
  type: string; // "{" where it is an object of its own
  fields: Field[];
}

// The fields of an interface's body, objects inside of it included.
function fieldsOf(body: string): Field[] {
  const fields: Field[] = [];
  const open: Field[] = [];
  for (const match of body.matchAll(/(\w+)\??:\s*(\{|[^;{}]+;)|\}(\[\])?;?/g)) {
    const [, name, type, list] = match;
    if (name === undefined) {
      const closed = open.pop();
      if (closed !== undefined && list !== undefined) closed.type = '{[]';
      continue;
    }
    const field = { name, type: type.replace(/;$/, '').trim(), fields: [] };
    (open.at(-1)?.fields ?? fields).push(field);
    if (field.type === '{') open.push(field);
  }
  return fields;
}

describe('the report', () => {
  const messages = schema(read('../../../analyzer/report/report.proto'));
  const source = withoutComments(read('../../src/data/report.ts'));
  const interfaces = [...source.matchAll(/^export interface (\w+) \{\n(.*?)^\}/gms)];

  // `data/report.ts` narrows some strings to the words that they can be.
  const plain = (type: string) => (type === 'Verdict' ? 'string' : type);
  const check = (message: string, fields: Field[], where: string) => {
    const known = messages.get(message);
    expect(known, `${where}: message ${message}`).toBeDefined();
    for (const field of fields) {
      const type = known?.get(field.name);
      const place = `${where}.${field.name}`;
      expect(type, `${place} is in report.proto`).toBeDefined();
      if (type === undefined) continue;
      if (!field.type.startsWith('{')) expect(plain(field.type), place).toBe(type);
      else {
        expect(type.endsWith('[]'), place).toBe(field.type === '{[]');
        check(type.replace('[]', ''), field.fields, place);
      }
    }
  };

  it('has interfaces to look at', () => {
    expect(interfaces.length).toBeGreaterThan(15);
    expect(messages.get('Breakdown')?.get('classes')).toBe('ClassRow[]');
  });
  for (const [, name, body] of interfaces)
    it(`${name} is the message of that name`, () => {
      const fields = fieldsOf(body);
      expect(fields.length).toBeGreaterThan(1);
      check(name, fields, name);
    });
});
