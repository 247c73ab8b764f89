// Making elements. Text of others reaches the page only here, through text nodes and attributes, never as HTML.

import { shown } from "./text";

export type Kid = Node | string | number | null | undefined | false | readonly Kid[];
type Value = string | number | boolean | null | undefined;
export interface Props {
  class?: string;
  style?: Record<string, string>;
  on?: { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
  [attribute: string]: Value | object | undefined;
}

const SPOKEN = new Set(["title", "aria-label", "aria-valuetext", "placeholder"]);

/** An element. `style` takes custom properties too, `on` takes listeners; an attribute that is null, undefined or false is left out. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props?: Props | null, ...kids: Kid[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value as string;
    else if (name === "style") for (const [property, x] of Object.entries(value as object)) element.style.setProperty(property, x as string);
    else if (name === "on") for (const [event, f] of Object.entries(value as object)) element.addEventListener(event, f as EventListener);
    else element.setAttribute(name, value === true ? "" : SPOKEN.has(name) ? String(value).split("\n").map(shown).join("\n") : String(value));
  }
  append(element, kids);
  return element;
}

export function append(parent: Node, kids: Kid): void {
  if (kids === null || kids === undefined || kids === false) return;
  if (Array.isArray(kids)) for (const kid of kids) append(parent, kid);
  else parent.appendChild(typeof kids === "object" ? (kids as Node) : document.createTextNode(shown(String(kids))));
}

export function fill(parent: Element, ...kids: Kid[]): void {
  parent.replaceChildren();
  append(parent, kids);
}

/** Makes an element look like a new one of its kind. Whatever is the same stays in the page: a press of the mouse that is not over yet, or selected text, may stand in it. */
export function become(old: ChildNode, wanted: ChildNode): void {
  if (old.isEqualNode(wanted)) return;
  if (old.nodeName !== wanted.nodeName) old.replaceWith(wanted);
  else if (!(old instanceof Element && wanted instanceof Element)) old.nodeValue = wanted.nodeValue;
  else {
    for (const name of old.getAttributeNames()) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of wanted.attributes)
      if (name === "style") (old as HTMLElement).style.cssText = value; // pages may forbid the attribute
      else if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const [is, shall] = [[...old.childNodes], [...wanted.childNodes]];
    shall.forEach((kid, i) => (is[i] ? become(is[i], kid) : old.append(kid)));
    for (const kid of is.slice(shall.length)) kid.remove();
  }
}

export const span = (cls: string, ...kids: Kid[]): HTMLSpanElement => h("span", { class: cls }, kids);
export const div = (cls: string, ...kids: Kid[]): HTMLDivElement => h("div", { class: cls }, kids);
export const bold = (...kids: Kid[]): HTMLElement => h("b", null, kids);
export const keycap = (...keys: string[]): Kid => keys.map((key) => [h("kbd", null, key), " "]);

/** A button. key: its name among the things that keep the focus when their surroundings are drawn anew. */
export function button(key: string, label: Kid, act: (event: MouseEvent) => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", "data-k": key, on: { click: act }, ...props }, label);
}

/** A message with `code` in back quotes; a line break stays one. */
export const prose = (text: string): Kid =>
  text.split("\n").map((line, at) => [at > 0 && h("br"), line.split("`").map((part, i) => (i % 2 ? h("code", null, part) : part))]);

/** Draws and gives the focus back to the element of the same `data-k`; where that is gone, to what stands in for it. */
export function keepingFocus(root: HTMLElement, draw: () => void, standIn: () => HTMLElement = () => root): void {
  const active = root.getRootNode() instanceof ShadowRoot ? (root.getRootNode() as ShadowRoot).activeElement : document.activeElement;
  const inside = active !== null && root.contains(active);
  const key = inside ? active.getAttribute("data-k") : null;
  draw();
  const isShown = (element: Element): boolean => element.isConnected && root.contains(element) && (element.checkVisibility?.() ?? true);
  if (!inside || isShown(active)) return;
  const again = key === null ? null : root.querySelector<HTMLElement>(`[data-k="${CSS.escape(key)}"]`);
  (again && isShown(again) ? again : standIn()).focus({ preventScroll: true });
}

/** Arrow keys walk among siblings: calls step with the distance of a pressed key. */
export function roving(element: HTMLElement, keys: Record<string, number>, step: (distance: number) => void): void {
  element.addEventListener("keydown", (event) => {
    const distance = keys[event.key];
    if (distance === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    step(distance);
  });
}

/** Follows the pointer from a press until it is let go. */
export function dragging(event: PointerEvent, move: (event: PointerEvent) => void): void {
  const element = event.currentTarget as HTMLElement;
  element.setPointerCapture(event.pointerId);
  const end = (): void => {
    element.removeEventListener("pointermove", move);
    element.removeEventListener("pointerup", end);
    element.removeEventListener("pointercancel", end);
  };
  element.addEventListener("pointermove", move);
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
}

export const ACROSS = { ArrowRight: 1, ArrowLeft: -1 };
export const DOWN = { ArrowDown: 1, ArrowUp: -1 };
