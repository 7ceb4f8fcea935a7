// node embed.mjs PAGE.html OUT.cpp: the page as a C++ source.
import { readFileSync, writeFileSync } from 'node:fs';

const [page, out] = process.argv.slice(2);
const bytes = readFileSync(page);
if (!bytes.includes('@VRAMTRACE_DATA@')) throw new Error(`${page}: no place for the data`);
const lines = [];
for (let i = 0; i < bytes.length; i += 32) lines.push(bytes.subarray(i, i + 32).join(','));
writeFileSync(
  out,
  `// Made by viewer/packaging/embed.mjs.
#include "analyzer/viewer_data/page.h"
namespace vramtrace::viewer_data {
namespace {
constexpr unsigned char kPage[] = {
${lines.join(',\n')}};
}  // namespace
std::string_view PageTemplate() { return {reinterpret_cast<const char*>(kPage), sizeof kPage}; }
}  // namespace vramtrace::viewer_data
`,
);
