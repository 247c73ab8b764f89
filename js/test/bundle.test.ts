// @vitest-environment node
import { expect, test } from "vitest";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundle, folded } from "../build.mjs";
import { unfolded } from "../src/view";

const committed = readFileSync(join(import.meta.dirname, "../../tilelang_nb/notebook/static/widget.js"), "utf8");

test("the committed bundle is what the sources build", async () => {
  expect(committed === (await bundle()), "run `npm run build` and commit the result").toBe(true);
});
test("it has at most 120 kB", () => {
  expect(new TextEncoder().encode(committed).length).toBeLessThanOrEqual(120_000);
});
test("it can stand inside a script element, and asks nothing of the network", () => {
  expect(committed).not.toMatch(/<\/script|<!--/i);
  expect(committed).not.toMatch(/https?:\/\//);
});
test("a style sheet that was folded is what it was", () => {
  const css = readFileSync(join(import.meta.dirname, "../src/style.css"), "utf8").replace(/\s+/g, " ");
  const made = folded(css);
  expect(unfolded(made)).toBe(css);
  expect(made.text.length + made.pieces.join("").length).toBeLessThan(css.length * 0.75);
});
