// Builds elements. Text is always inserted as text, so a token can never become markup.

/** An element with attributes (functions become handlers) and children (strings become text). */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made[name] = value;
    else if (name === "style") made.style.cssText = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A <span> of a class. */
export function span(name, ...children) {
  return element("span", { class: name }, ...children);
}

/** A button; `testid` is how tests find it. */
export function button(testid, onclick, attributes, ...children) {
  return element("button", { type: "button", "data-testid": testid, onclick, ...attributes }, ...children);
}

/** One choice of a radio group. */
export function radio(testid, onclick, attributes, ...children) {
  return button(testid, onclick, { role: "radio", ...attributes }, ...children);
}

/** A switch with two states. `choose` takes the new one. */
export function toggle(testid, label, on, choose) {
  return button(testid, () => choose(!on), { class: "toggle", "aria-pressed": String(on) }, label);
}

/** A table of texts. The first cell of each row names it. */
export function table([corner, ...columns], rows, caption = null) {
  const cell = (tag, scope) => (text) => element(tag, { scope }, text);
  const row = ([name, ...cells]) =>
    element("tr", {}, cell("th", "row")(name), ...cells.map(cell("td")));
  const head = element("tr", {}, element("td", {}, corner), ...columns.map(cell("th", "col")));
  return element(
    "table",
    {},
    caption && element("caption", {}, caption),
    element("thead", {}, head),
    element("tbody", {}, ...rows.map(row)),
  );
}

const SVG = "http://www.w3.org/2000/svg";

export function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The text with a capital first letter. */
export function sentenceCase(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/** Writes a text unless it is there already: the browser would lay it out again. */
export function write(holder, text) {
  if (holder.textContent !== text) holder.textContent = text;
}

/** Remembers what each part was drawn from, so that only what has changed is drawn again. */
export class Drawn {
  facts = new Map();

  /** Whether the facts behind a part have changed since the last call. */
  differs(part, ...facts) {
    const before = this.facts.get(part);
    if (before && facts.every((fact, n) => fact === before[n])) return false;
    this.facts.set(part, facts);
    return true;
  }
}

/** Runs a task once the next frame is on the screen. Returns a function that cancels it. */
export function afterFrame(task) {
  let later = null;
  const frame = requestAnimationFrame(() => (later = setTimeout(task)));
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(later);
  };
}

/** Checks one radio button of a group. Tab reaches only this one, the arrow keys the others. `tabIndex` follows
 *  after the next frame: when that of the focused button changes, the browser lays out the whole page. */
export function check(radios, chosen) {
  const changed = radios.filter((radio, n) => radio.ariaChecked !== String(n === chosen));
  for (const radio of changed) radio.ariaChecked = String(radio === radios[chosen]);
  afterFrame(() => {
    for (const radio of changed) radio.tabIndex = radio.ariaChecked === "true" ? 0 : -1;
  });
}

const KEY_STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Moves the choice in the focused radio group with the arrow keys, Home and End. */
export function moveAmongRadios(event) {
  const group = event.target.closest("[role=radiogroup]");
  if (!group) return;
  const radios = [...group.querySelectorAll("[role=radio]")];
  const at = radios.indexOf(event.target);
  const places = { Home: 0, End: radios.length - 1 };
  const next = places[event.key] ?? (at + KEY_STEPS[event.key] + radios.length) % radios.length;
  if (!radios[next]) return;
  event.preventDefault();
  radios[next].click();
  radios[next].focus();
}

/** Draws. If that replaced the focused control, focuses the new one of the same name; in a radio group, the
 *  checked one. */
export function keepingFocus(root, draw) {
  const place = root.getRootNode();
  const name = root.contains(place.activeElement) ? place.activeElement.dataset.testid : null;
  draw();
  if (!name || root.contains(place.activeElement)) return;
  const same = root.querySelector(`[data-testid="${name}"]`) ?? root.querySelector(".figure");
  const group = same.closest("[role=radiogroup]");
  (group?.querySelector("[aria-checked=true]") ?? same).focus();
}

/** A small radio group. `options`: what each choice is called; `name`: how tests find its buttons. */
export function choiceOf(label, { options, chosen, choose, name }) {
  const values = Object.keys(options);
  const radios = values.map((value) =>
    radio(`${name}-${value}`, () => choose(value), {}, options[value]),
  );
  check(radios, values.indexOf(chosen));
  return element("span", { class: "switch", role: "radiogroup", "aria-label": label }, ...radios);
}

/** How many times as large as its own pixels everything is drawn: 1, but in the lecture view. */
export function drawnLarger() {
  if (globalThis.document?.documentElement.dataset.lecture === undefined) return 1; // to ask for a style takes time
  return Number(getComputedStyle(document.documentElement).getPropertyValue("--larger")) || 1;
}
