// @vitest-environment node
import { expect, test } from "vitest";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundle, packed } from "../build.mjs";
import { inflated } from "../src/wire";

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
test("a style sheet that was compressed is what it was", async () => {
  const css = readFileSync(join(import.meta.dirname, "../src/style.css"), "utf8");
  expect(await inflated(Buffer.from(packed(css), "base64")).text()).toBe(css);
});
