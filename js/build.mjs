// Builds the one bundle that the package ships. Style sheets and the worker become text inside it, so that it is a single file.
// The first line names the sources it was made from: a test without node can tell that it is up to date.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../tilelang_nb/notebook/static/widget.js");
const common = { bundle: true, minify: true, target: "es2022", charset: "utf8", legalComments: "none", write: false, absWorkingDir: here };

/** Sorted paths under src: what the bundle depends on. */
export function sources() {
  return readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(here.length + 1).replaceAll("\\", "/"))
    .sort();
}

/** A digest of the sources and of the build itself. */
export function digest() {
  const hash = createHash("sha256");
  for (const path of [...sources(), "build.mjs", "package-lock.json"]) hash.update(path + "\0").update(readFileSync(join(here, path))).update("\0");
  return hash.digest("hex");
}

const asText = {
  name: "text",
  setup(build) {
    build.onResolve({ filter: /\.css\?text$/ }, (a) => ({ path: join(a.resolveDir, a.path.replace("?text", "")), namespace: "style" }));
    build.onLoad({ filter: /.*/, namespace: "style" }, async (a) => {
      const css = await esbuild.transform(readFileSync(a.path, "utf8"), { loader: "css", minify: true, target: ["chrome120", "firefox120", "safari17.2"] });
      return { contents: css.code.trim(), loader: "text" };
    });
    build.onResolve({ filter: /\?worker$/ }, (a) => ({ path: join(a.resolveDir, a.path.replace("?worker", ".ts")), namespace: "worker" }));
    build.onLoad({ filter: /.*/, namespace: "worker" }, async (a) => {
      const made = await esbuild.build({ ...common, entryPoints: [a.path], format: "iife" });
      return { contents: made.outputFiles[0].text.trim(), loader: "text" };
    });
  },
};

/** The text of the bundle. */
export async function bundle() {
  const made = await esbuild.build({ ...common, entryPoints: ["src/widget.ts"], format: "esm", plugins: [asText] });
  return `// tilelang_nb view; made from js/ by \`npm run build\`; sources ${digest()}\n${made.outputFiles[0].text}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = await bundle();
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
  console.log(`${Buffer.byteLength(text).toLocaleString("en")} bytes in ${target.slice(dirname(here).length + 1)}`);
}
