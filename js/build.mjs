// Builds the one bundle that the package ships. The style sheet, compressed, and the worker become text inside it, so that it is a single file.
// The first line names the sources it was made from: a test without node can tell that it is up to date.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { zlibSync } from "fflate";
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

const parsed = (path) => ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.ES2022, true);

/** The names of all members that TypeScript's declarations of the language and of the page have. */
function known() {
  const lib = join(here, "node_modules/typescript/lib");
  const names = new Set();
  const visit = (node) => {
    const isNamed = ts.isTypeElement(node) || ts.isClassElement(node) || ts.isVariableDeclaration(node) || ts.isFunctionDeclaration(node);
    if (isNamed && node.name && ts.isIdentifier(node.name)) names.add(node.name.text);
    ts.forEachChild(node, visit);
  };
  for (const name of readdirSync(lib)) if (/^lib\.(es|dom|webworker)[\w.]*\.d\.ts$/.test(name)) visit(parsed(join(lib, name)));
  return names;
}

/** Is a string the class, the name or the tag of an element, or another attribute's value, and so no member's name? */
function isValue({ parent, text }) {
  if (ts.isCallExpression(parent)) return ["h", "div", "span", "button"].includes(parent.expression.text) && parent.arguments[0].text === text;
  return ts.isPropertyAssignment(parent) && /^(class|role|title|placeholder|(data|aria)-[\w-]+)$/.test(parent.name.text) && parent.initializer.text === text;
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
    } else if (ts.isStringLiteralLike(node) && !isValue(node)) others.add(node.text), fixed.add(node.text);
    else if (ts.isBindingElement(node)) others.add((node.propertyName ?? node.name).text);
    else if (ts.isShorthandPropertyAssignment(node) || ts.isPropertyAssignment(node) || ts.isTypeElement(node) || ts.isClassElement(node)) others.add(name);
    if ((ts.isTypeElement(node) || ts.isClassElement(node)) && name) own.add(name);
    if (ts.isCallExpression(node) && ["h", "button"].includes(node.expression.text))
      for (const value of node.arguments) if (ts.isObjectLiteralExpression(value)) for (const one of value.properties) fixed.add(one.name?.text);
    ts.forEachChild(node, (child) => visit(child, isOthers));
  };
  for (const path of sources())
    if (path.endsWith(".ts")) visit(parsed(join(here, path)), OF_OTHERS.some((name) => path.endsWith(`/${name}`)));
  const names = [...[...hidden].filter((name) => !others.has(name)), ...[...own].filter((name) => !fixed.has(name))];
  return new RegExp(`^(${names.join("|")})$`);
}

/** A text, compressed as zlib does: the same on every machine and with every node, which node's own zlib does not promise. */
export const packed = (text) => Buffer.from(zlibSync(Buffer.from(text), { level: 9 })).toString("base64");

const asText = {
  name: "text",
  setup(build) {
    build.onResolve({ filter: /\.css\?text$/ }, (a) => ({ path: join(a.resolveDir, a.path.replace("?text", "")), namespace: "style" }));
    build.onLoad({ filter: /.*/, namespace: "style" }, async (a) => {
      const css = await esbuild.transform(readFileSync(a.path, "utf8"), { loader: "css", minify: true, target: ["chrome120", "firefox120", "safari17.2"] });
      return { contents: packed(css.code.trim().replace(/(--[\w-]+): /g, "$1:")), loader: "text" };
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
