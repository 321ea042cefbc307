// What on a page cannot be read as it should: letters cut off, over other letters, out of the screen, a legend
// over what it explains, a tall stretch with nothing in it. Open shadow roots count. One line for each fault.
//
// Every text is a box, turned as the text is, and as high as its capital letters: lines may stand close.

(() => {
  const SLACK = 2; // pixels that nobody sees
  const EMPTY = 200; // pixels of height with nothing in them
  const CAPITALS = 0.72; // height of a capital letter, in font sizes
  const ASIDE = // formulas as read aloud, icons, and the menu where it is put away
    ".katex-mathml, [data-testid=stIconMaterial], [data-testid=stSidebar][data-collapsed=true]";
  const { innerWidth } = window;
  const main = document.querySelector("[data-testid=stMainBlockContainer]") ?? document.body;
  const faults = new Set();
  const styles = new Map();

  function styleOf(element) {
    if (!styles.has(element)) styles.set(element, getComputedStyle(element));
    return styles.get(element);
  }

  function* within(root) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      if (element.shadowRoot) yield* within(element.shadowRoot);
    }
  }

  function above(element) {
    return element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null;
  }

  function isSeen(element) {
    const asked = { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true };
    if (!element.checkVisibility(asked)) return false;
    for (let at = element; at; at = above(at)) {
      const { clipPath, clip, display, fill } = styleOf(at);
      if (display === "none") return false; // hidden in a narrow container: Chromium calls it visible
      if (clipPath !== "none" || clip !== "auto") return at instanceof SVGElement; // for screen readers
      if (at === element && at instanceof SVGElement && fill === "none") return false;
    }
    return true;
  }

  /** A rectangle as four corners, turned about one of its own points or not. */
  function corners({ left, top, right, bottom }, matrix) {
    return [
      [left, top],
      [right, top],
      [right, bottom],
      [left, bottom],
    ].map(([x, y]) => {
      if (!matrix) return [x, y];
      return [matrix.a * x + matrix.c * y + matrix.e, matrix.b * x + matrix.d * y + matrix.f];
    });
  }

  function box(text, element, polygon) {
    const [xs, ys] = [0, 1].map((axis) => polygon.map((corner) => corner[axis]));
    const bounds = {
      left: Math.min(...xs),
      right: Math.max(...xs),
      top: Math.min(...ys),
      bottom: Math.max(...ys),
    };
    return { text: text.trim().replace(/\s+/g, " "), element, polygon, ...bounds };
  }

  /** A line of letters is as high as its capitals. */
  function lowered({ left, right, top, bottom }, size) {
    const spare = Math.max(0, (bottom - top - size * CAPITALS) / 2);
    return { left, right, top: top + spare, bottom: bottom - spare };
  }

  function linesOf(node) {
    const range = document.createRange();
    range.selectNodeContents(node);
    const element = node.parentElement;
    const size = parseFloat(styleOf(element).fontSize);
    return [...range.getClientRects()]
      .filter(({ width, height }) => width > 0.5 && height > 0.5)
      .map((line) => box(node.data, element, corners(lowered(line, size))));
  }

  /** All that a formula draws as one box a piece between which it may break. */
  function piecesOf(formula) {
    return [...formula.querySelectorAll(":scope > .base")].map((piece) => {
      const drawn = [...piece.querySelectorAll("*")].filter(
        (one) => one.childNodes.length === 1 && one.firstChild.nodeType === Node.TEXT_NODE,
      );
      const rects = drawn
        .filter((one) => one.textContent.trim().replace(/\u200b/g, ""))
        .map((one) => lowered(one.getBoundingClientRect(), parseFloat(styleOf(one).fontSize)));
      if (!rects.length) return null;
      const union = {
        left: Math.min(...rects.map(({ left }) => left)),
        top: Math.min(...rects.map(({ top }) => top)),
        right: Math.max(...rects.map(({ right }) => right)),
        bottom: Math.max(...rects.map(({ bottom }) => bottom)),
      };
      return box(piece.textContent, piece, corners(union));
    });
  }

  function drawnText(text) {
    const size = parseFloat(styleOf(text).fontSize);
    const lines = text.querySelectorAll("tspan.line");
    return [...(lines.length ? lines : [text])].map((line) => {
      if (!line.textContent.trim()) return null;
      const { x, y, width, height } = line.getBBox();
      const flat = lowered({ left: x, top: y, right: x + width, bottom: y + height }, size);
      return box(line.textContent, text, corners(flat, line.getScreenCTM()));
    });
  }

  function boxesOf(element) {
    if (element.closest(ASIDE)) return [];
    if (element.matches("script, style, title, desc, noscript, option")) return [];
    if (element.matches("input:not([type=range], [type=checkbox], [type=radio])")) {
      return isSeen(element) ? typedIn(element) : [];
    }
    if (element instanceof SVGElement) {
      return element.matches("text") && isSeen(element) ? drawnText(element).filter(Boolean) : [];
    }
    if (element.matches(".katex-html")) return isSeen(element) ? piecesOf(element).filter(Boolean) : [];
    if (element.closest(".katex-html")) return [];
    const texts = [...element.childNodes].filter(
      (node) => node.nodeType === Node.TEXT_NODE && node.data.trim(),
    );
    return texts.length && isSeen(element) ? texts.flatMap(linesOf) : [];
  }

  /** What stands in a box to type in, as wide as it is, or as wide as the box. */
  function typedIn(input) {
    const text = input.value || input.placeholder;
    if (!text) return [];
    const style = styleOf(input);
    const pen = (typedIn.pen ??= document.createElement("canvas").getContext("2d"));
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const bounds = input.getBoundingClientRect();
    const left = bounds.left + parseFloat(style.paddingLeft);
    const end = bounds.right - parseFloat(style.paddingRight);
    const right = Math.min(left + pen.measureText(text).width, end);
    const size = parseFloat(style.fontSize);
    return [box(text, input, corners(lowered({ ...edges(bounds), left, right }, size)))];
  }

  function edges({ left, top, right, bottom }) {
    return { left, top, right, bottom };
  }

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
