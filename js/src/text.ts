// Words and numbers for people, and text of others made visible character by character.

export const clamp = (x: number, low: number, high: number): number => Math.max(low, Math.min(high, x));

/** 1234567 as 1,234,567, as the compiler's own texts have it. */
export const grouped = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** At most five characters: 9999, 12k, 3.4M. */
export const brief = (n: number): string => (n < 10_000 ? String(n) : n < 1_000_000 ? `${Math.round(n / 1000)}k` : `${(n / 1_000_000).toFixed(1)}M`);

export const plural = (n: number, word: string): string => `${grouped(n)} ${word}${n === 1 ? "" : "s"}`;

export function milliseconds(x: number): string {
  if (x >= 10_000) return `${(x / 1000).toFixed(1)} s`;
  return `${x < 0.095 ? x.toFixed(2) : x < 9.95 ? x.toFixed(1) : String(Math.round(x))} ms`;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const kib = n / 1024;
  return `${kib < 10 && n % 1024 ? kib.toFixed(1) : String(Math.round(kib))} KiB`;
}

export function percent(share: number): string {
  const p = share * 100;
  return p > 0 && p < 1 ? "<1 %" : `${Math.round(p)} %`;
}

// Characters that would move the cursor, hide, or change the direction of what follows. Tab and the ordinary space stay.
const UNSEEN =
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;

/** Text as it is shown: control characters as their pictures (␛), others without a shape as their number (⟨U+202E⟩). */
export function shown(text: string): string {
  return text.replace(UNSEEN, (c) => {
    const code = c.codePointAt(0)!;
    if (code < 32) return String.fromCharCode(0x2400 + code);
    if (code === 127) return "\u2421";
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** Index in UTF-16 units of a column counted in code points, as the compiler counts. */
export function unitColumn(line: string, column: number): number {
  if (!/[\ud800-\udfff]/.test(line)) return Math.min(column, line.length);
  let unit = 0;
  for (let point = 0; point < column && unit < line.length; point++) unit += line.codePointAt(unit)! > 0xffff ? 2 : 1;
  return unit;
}

/** Columns that a line takes on the screen, tabs as four. */
export function columns(line: string): number {
  let extra = 0;
  for (let at = line.indexOf("\t"); at >= 0; at = line.indexOf("\t", at + 1)) extra += 3;
  return line.length + extra;
}
