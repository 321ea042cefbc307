// Building elements. Text always goes in as text, so a token can never become markup.

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

/** Writes a text, unless it stands there: a browser lays out what is written again. */
export function write(holder, text) {
  if (holder.textContent !== text) holder.textContent = text;
}

const SVG = "http://www.w3.org/2000/svg";

export function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Marks one radio of a group; it alone is reached with Tab, the others with the arrow keys. Where Tab leads
 *  is changed after the next frame: a browser lays out the whole page when the focused button's is. */
export function check(radios, chosen) {
  const changed = radios.filter(
    (radio, n) => radio.getAttribute("aria-checked") !== String(n === chosen),
  );
  for (const radio of changed) radio.setAttribute("aria-checked", String(radio === radios[chosen]));
  afterFrame(() => {
    for (const radio of changed) radio.tabIndex = radio.getAttribute("aria-checked") === "true" ? 0 : -1;
  });
}

/** Runs a task once the next frame is on the screen. */
function afterFrame(task) {
  requestAnimationFrame(() => setTimeout(task));
}

const KEY_STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Arrow keys, Home and End move the choice among `count` radios. */
export function radioKeys(group, count, chosen, choose) {
  group.onkeydown = (event) => {
    let next = null;
    if (event.key in KEY_STEPS) next = (chosen() + KEY_STEPS[event.key] + count) % count;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = count - 1;
    if (next === null) return;
    event.preventDefault();
    choose(next);
    group.querySelectorAll("[role=radio]")[next]?.focus();
  };
}

/** Draws; if that replaced the focused control, its successor gets the focus: the one of the same name,
 *  in a radio group the one now chosen. */
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
export function twoWaySwitch(label, { options, chosen, choose, name }) {
  const values = Object.keys(options);
  const radios = values.map((value) =>
    element(
      "button",
      {
        type: "button",
        role: "radio",
        "data-testid": `${name}-${value}`,
        onclick: () => choose(value),
      },
      options[value],
    ),
  );
  check(radios, values.indexOf(chosen));
  const group = element("span", { class: "switch", role: "radiogroup", "aria-label": label }, ...radios);
  radioKeys(group, values.length, () => values.indexOf(chosen), (next) => choose(values[next]));
  return group;
}
