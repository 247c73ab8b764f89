import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { packed } from "./build.mjs";

// The build's text imports, for tests: the style sheet as it stands, and no worker (diffs then run on this thread).
const asText = {
  name: "text",
  enforce: "pre",
  resolveId(id, from) {
    if (id.endsWith(".css?text")) return "\0style:" + new URL(id.replace(".css?text", ""), "file://" + from).pathname;
    if (id.endsWith("?worker")) return "\0worker";
  },
  load(id) {
    if (id === "\0worker") return 'export default ""';
    if (id.startsWith("\0style:")) return `export default ${JSON.stringify(packed(readFileSync(id.slice(7) + ".css", "utf8")))}`;
  },
};
export default defineConfig({ plugins: [asText], test: { environment: "happy-dom", include: ["test/**/*.test.ts"], testTimeout: 120_000 } });
