// What on a page cannot be read as it should: letters cut off, over other letters, out of the screen, a legend
// over what it explains, a tall stretch with nothing in it. One line for each fault.
//
// `letters` is what legible_letters.js gives: where the letters are.

(() => {
  const SLACK = 2; // pixels that nobody sees
  const EMPTY = 200; // pixels of height with nothing in them
  const { above, boxesOf, isSeen, lowered, styleOf, within } = letters;
  const { innerWidth } = window;
  const main = document.querySelector("[data-testid=stMainBlockContainer]") ?? document.body;
  const faults = new Set();

  /** The places that hold it, from the inside out, with what each does with what reaches beyond it. */
  function* holders(element) {
    let out = false; // placed absolutely: a holder that is not placed itself lets it out
    for (let at = element; at && at !== document.documentElement; at = above(at)) {
      const style = styleOf(at);
      if (out && style.position === "static" && style.transform === "none") continue;
      yield [at, style];
      if (style.position === "fixed") return;
      out = style.position === "absolute";
    }
  }

  /** Whether there is a bar, or a shade, that says that there is more. */
  function scrollsVisibly(style, across) {
    if (!/auto|scroll/.test(across ? style.overflowX : style.overflowY)) return false;
    return !across || style.scrollbarColor !== "auto";
  }

  function cutOff(one) {
    for (const [holder, style] of holders(one.element)) {
      if (holder === main.parentElement || holder.matches("[data-testid=stMain], .stApp")) break;
      const view = holder.getBoundingClientRect();
      if (holder instanceof SVGElement && !holder.matches("svg")) continue;
      const across = style.overflowX !== "visible";
      const down = style.overflowY !== "visible";
      const beside = across && (one.right > view.right + SLACK || one.left < view.left - SLACK);
      const below = down && (one.bottom > view.bottom + SLACK || one.top < view.top - SLACK);
      if (!beside && !below) continue;
      if (beside && style.textOverflow === "ellipsis") return null;
      if (beside && !scrollsVisibly(style, true)) return name(holder);
      if (below && !scrollsVisibly(style, false)) return name(holder);
      return null; // reached by scrolling: what is beyond the holder is not on the page now
    }
    return undefined;
  }

  function name(element) {
    const place = element.closest("[data-testid], [class*=st-key-]") ?? element;
    const key = /st-key-[\w-]+/.exec(element.closest("[class*=st-key-]")?.className ?? "")?.[0];
    return [key, place.dataset?.testid, element.getAttribute("class")?.split(" ").slice(0, 2).join(".")]
      .filter(Boolean)
      .join(" ");
  }

  /** Whether two turned rectangles share more than the slack: no line of a side keeps them apart. */
  function overlap(one, other) {
    for (const { polygon } of [one, other]) {
      for (let side = 0; side < 2; side++) {
        const [[x1, y1], [x2, y2]] = [polygon[side], polygon[side + 1]];
        const length = Math.hypot(x2 - x1, y2 - y1) || 1;
        const [x, y] = [(x2 - x1) / length, (y2 - y1) / length];
        const reach = [one, other].map(({ polygon }) => polygon.map(([a, b]) => a * x + b * y));
        const [first, second] = reach.map((all) => [Math.min(...all), Math.max(...all)]);
        const shared = Math.min(first[1], second[1]) - Math.max(first[0], second[0]);
        if (shared <= SLACK) return false;
      }
    }
    return true;
  }

  /** What lies above the page on purpose, opaque: the chosen label over its own tick, what stays in sight. */
  function layer(element) {
    if (element.closest(".marks")) return "marks";
    for (let at = element; at; at = above(at)) {
      if (/fixed|sticky/.test(styleOf(at).position)) return at;
      if (at.matches?.("[data-testid=stSidebar], [data-testid=stHeader]")) return at;
    }
    return "page";
  }

  const elements = [...within(document.body)];
  const boxes = elements.flatMap(boxesOf).filter(({ text }) => text);
  const shown = [];
  for (const one of boxes) {
    const holder = cutOff(one);
    if (holder === undefined) shown.push(one);
    else if (holder) faults.add(`cut off: “${one.text.slice(0, 60)}” in ${holder}`);
  }
  for (const one of shown) {
    const inSidebar = one.element.closest("[data-testid=stSidebar]");
    if (!inSidebar && (one.right > innerWidth + SLACK || one.left < -SLACK)) {
      faults.add(`beyond the screen: “${one.text.slice(0, 60)}” in ${name(one.element)}`);
    }
  }

  shown.sort((one, other) => one.top - other.top);
  shown.forEach((one, at) => {
    for (let next = at + 1; next < shown.length && shown[next].top < one.bottom; next++) {
      const other = shown[next];
      if (other.left > one.right || other.right < one.left) continue;
      if (other.element === one.element && other.text === one.text && !other.element.matches("text")) continue;
      if (!overlap(one, other)) continue;
      if ((one.layer ??= layer(one.element)) !== (other.layer ??= layer(other.element))) continue;
      const texts = [one, other].map(({ text }) => `“${text.slice(0, 40)}”`).sort();
      faults.add(`on each other: ${texts.join(" and ")} in ${name(one.element)}`);
    }
  });

  for (const plot of elements.filter((element) => element.matches(".js-plotly-plot"))) {
    for (const entry of plot.querySelectorAll(".legendtext")) {
      const size = parseFloat(styleOf(entry).fontSize);
      const place = lowered(entry.getBoundingClientRect(), size);
      if (place.right > place.left && covers(plot, place)) {
        faults.add(`legend over what is drawn: “${entry.textContent.slice(0, 60)}” in ${name(plot)}`);
      }
    }
  }

  function covers(plot, place) {
    const inside = (x, y) =>
      x > place.left + SLACK && x < place.right - SLACK && y > place.top + SLACK && y < place.bottom - SLACK;
    const drawn = (what) => [...plot.querySelectorAll(what)].filter((one) => !one.closest(".legend"));
    const bars = drawn(".bars .point path, .points path");
    if (bars.some((bar) => meets(bar.getBoundingClientRect(), place))) return true;
    return drawn(".js-line").some((line) => {
      const matrix = line.getScreenCTM();
      const length = line.getTotalLength();
      for (let at = 0; at <= length; at += 4) {
        const { x, y } = line.getPointAtLength(at).matrixTransform(matrix);
        if (inside(x, y)) return true;
      }
      return false;
    });
  }

  function meets(one, other) {
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    return across > SLACK && down > SLACK;
  }

  /** From where to where something is to be seen, of what is in the page's own column. */
  function filled() {
    const kinds = "canvas, img, input, button, textarea, hr, svg, [role=slider], .nsewdrag, iframe";
    const inside = new Set(within(main));
    const things = [...inside].filter(
      (one) => one.matches(kinds) && one.getRootNode().host?.tagName !== "svg" && isSeen(one),
    );
    const places = [
      ...things.filter((one) => !one.matches("svg.main-svg")).map((one) => one.getBoundingClientRect()),
      ...shown.filter(({ element }) => inside.has(element)),
    ];
    return places
      .filter(({ top, bottom }) => bottom > top)
      .sort((one, other) => one.top - other.top);
  }

  const start = main.getBoundingClientRect().top;
  const scrolled = main.closest("[data-testid=stMain]") ?? document.documentElement;
  const end = start + Math.max(scrolled.scrollHeight, main.scrollHeight);
  let bottom = start;
  for (const place of filled()) {
    if (place.top - bottom > EMPTY && bottom > start) {
      faults.add(`empty: ${Math.round(place.top - bottom)} px above “${place.text ?? "a picture"}”`);
    }
    bottom = Math.max(bottom, place.bottom);
  }
  const endOfScreen = scrolled.scrollHeight <= scrolled.clientHeight;
  if (!endOfScreen && end - bottom > EMPTY) faults.add(`empty: ${Math.round(end - bottom)} px at the end`);
  return [...faults];
})()
