// Light or dark by the background that is really there, so that any theme works.

/** Sets the root's class `dark` and its data-theme. The root must be in the page. */
export function applyTheme(root: HTMLElement): void {
  if (!root.isConnected) return;
  root.classList.remove("dark");
  const style = getComputedStyle(root);
  const isThemed = ["--jp-layout-color1", "--vscode-editor-background"].some((name) => style.getPropertyValue(name).trim() !== "") || document.body.dataset.jpThemeLight !== undefined;
  const [red, green, blue] = style.backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [255, 255, 255];
  const asked = document.documentElement.dataset.tnbTheme; // a page without a theme of its own may name one
  const isDark = isThemed
    ? 0.299 * red + 0.587 * green + 0.114 * blue < 128
    : asked !== undefined
      ? asked === "dark"
      : (globalThis.matchMedia?.("(prefers-color-scheme: dark)").matches ?? false);
  root.classList.toggle("dark", isDark);
  root.setAttribute("data-theme", isDark ? "dark" : "light");
}

/** Calls back when the page's theme may have changed; the result ends that. */
export function watchTheme(changed: () => void): () => void {
  const query = globalThis.matchMedia?.("(prefers-color-scheme: dark)");
  query?.addEventListener?.("change", changed);
  const watcher = typeof MutationObserver === "undefined" ? null : new MutationObserver(() => {
    requestAnimationFrame(changed);
    setTimeout(changed, 400); // a theme's style sheet may come after its name
  });
  watcher?.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "data-theme", "class", "style"] });
  watcher?.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "style", "data-theme", "data-tnb-theme"] });
  return () => {
    query?.removeEventListener?.("change", changed);
    watcher?.disconnect();
  };
}
