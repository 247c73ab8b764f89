// Text taken out of the page: to the clipboard, or as a file.

import { h } from "./dom";

/** Copies; false where the browser refuses. */
export async function copied(text: string, inside: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text, inside); // refused, or a page that is not served securely
  }
}

/** The old way to the clipboard, where the page is not served securely. */
function copiedBySelection(text: string, inside: HTMLElement): boolean {
  const area = h("textarea", { class: "spoken", "aria-hidden": "true" });
  area.value = text;
  const active = document.activeElement as HTMLElement | null;
  inside.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
    active?.focus?.();
  }
}

/** Downloads a text under a name. */
export function saved(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
