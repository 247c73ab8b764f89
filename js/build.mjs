// Builds the one bundle that the package ships. Style sheets and the worker become text inside it, so that it is a single file.
// The first line names the sources it was made from: a test without node can tell that it is up to date.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import ts from "typescript";

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

/** Files whose names are those of others: of reports, of notebooks, of pages that mount the view, of the worker's messages. */
const OF_OTHERS = ["wire.ts", "widget.ts", "view.ts", "compare.ts", "compare_worker.ts", "differ.ts", "assets.d.ts"];

/** All names that TypeScript's declarations of the language and of the page mention. */
function known() {
  const lib = join(here, "node_modules/typescript/lib");
  const files = readdirSync(lib).filter((name) => /^lib\.(es|dom|webworker)[\w.]*\.d\.ts$/.test(name));
  return new Set(files.flatMap((name) => readFileSync(join(lib, name), "utf8").match(/[\w$]+/g)));
}

/**
 * Members of the view's own classes and interfaces that esbuild may rename: those whose name nothing else has, be it of the page, of
 * a report, of a string, of an attribute or of a data set. Private members count as named by `this` alone.
 */
function renamed() {
  const [hidden, own, others, fixed] = [new Set(), new Set(), new Set(), known()];
  const visit = (node, isOthers) => {
    const name = node.name?.text;
    if (isOthers && ts.isIdentifier(node)) fixed.add(node.text);
    if ((node.modifiers ?? []).some((modifier) => modifier.kind === ts.SyntaxKind.PrivateKeyword)) hidden.add(name);
    else if (ts.isPropertyAccessExpression(node)) {
      if (node.expression.kind !== ts.SyntaxKind.ThisKeyword) others.add(name);
      if (node.expression.name?.text === "dataset") fixed.add(name);
    } else if (ts.isStringLiteralLike(node)) others.add(node.text), fixed.add(node.text);
    else if (ts.isBindingElement(node)) others.add((node.propertyName ?? node.name).text);
    else if (ts.isShorthandPropertyAssignment(node) || ts.isPropertyAssignment(node) || ts.isTypeElement(node) || ts.isClassElement(node)) others.add(name);
    if ((ts.isTypeElement(node) || ts.isClassElement(node)) && name) own.add(name);
    if (ts.isCallExpression(node) && ["h", "button"].includes(node.expression.text))
      for (const value of node.arguments) if (ts.isObjectLiteralExpression(value)) for (const one of value.properties) fixed.add(one.name?.text);
    ts.forEachChild(node, (child) => visit(child, isOthers));
  };
  for (const path of sources())
    if (path.endsWith(".ts")) visit(ts.createSourceFile(path, readFileSync(join(here, path), "utf8"), ts.ScriptTarget.ES2022, true), OF_OTHERS.some((name) => path.endsWith(`/${name}`)));
  const names = [...[...hidden].filter((name) => !others.has(name)), ...[...own].filter((name) => !fixed.has(name))];
  return new RegExp(`^(${names.join("|")})$`);
}

/** A text in which pieces that recur stand as one sign each, and the pieces: `unfolded` in view.ts puts them back, last one first. */
export function folded(text) {
  const pieces = [];
  const signs = Array.from({ length: 94 + 95 }, (_, i) => String.fromCharCode(i < 94 ? 33 + i : 161 - 94 + i)).filter((sign) => !text.includes(sign) && !"\\\"`$'\xad".includes(sign));
  for (const sign of signs) {
    const width = sign < "\x7f" ? 1 : 2; // bytes in UTF-8
    let [best, most] = ["", 8]; // bytes that a piece must save
    for (const length of [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 24, 30, 40]) {
      const seen = new Map();
      for (let at = 0; at + length <= text.length; at++) {
        const piece = text.slice(at, at + length);
        const known = seen.get(piece);
        if (!known) seen.set(piece, { count: 1, end: at + length });
        else if (at >= known.end) {
          known.count++;
          known.end = at + length;
          const saved = known.count * (length - width) - length - width - 3;
          if (saved > most) [best, most] = [piece, saved];
        }
      }
    }
    if (!best) break;
    text = text.replaceAll(best, sign);
    pieces.push(sign + best);
  }
  return { text, pieces };
}

const asText = {
  name: "text",
  setup(build) {
    build.onResolve({ filter: /\.css\?text$/ }, (a) => ({ path: join(a.resolveDir, a.path.replace("?text", "")), namespace: "style" }));
    build.onLoad({ filter: /.*/, namespace: "style" }, async (a) => {
      const css = await esbuild.transform(readFileSync(a.path, "utf8"), { loader: "css", minify: true, target: ["chrome120", "firefox120", "safari17.2"] });
      return { contents: JSON.stringify(folded(css.code.trim().replace(/(--[\w-]+): /g, "$1:"))), loader: "json" };
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
  const made = await esbuild.build({ ...common, entryPoints: ["src/widget.ts"], format: "esm", plugins: [asText], mangleProps: renamed() });
  return `// tilelang_nb view; made from js/ by \`npm run build\`; sources ${digest()}\n${made.outputFiles[0].text}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = await bundle();
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
  console.log(`${Buffer.byteLength(text).toLocaleString("en")} bytes in ${target.slice(dirname(here).length + 1)}`);
}
