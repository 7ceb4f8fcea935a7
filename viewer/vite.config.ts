import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { singleFile } from './packaging/single_file.ts';

export default defineConfig({
  plugins: [singleFile(fileURLToPath(new URL('index.html', import.meta.url)))],
  build: {
    target: 'es2022',
    cssCodeSplit: false,
    emptyOutDir: true,
    rolldownOptions: {
      input: fileURLToPath(new URL('src/main.tsx', import.meta.url)),
      // A module script does not load from file://.
      output: { format: 'iife', entryFileNames: 'viewer.js', assetFileNames: 'viewer[extname]' },
    },
  },
  test: { include: ['test/unit/**/*.test.ts'], testTimeout: 60_000 },
});
