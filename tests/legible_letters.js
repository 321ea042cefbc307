// Where the letters of a page are: each text as boxes, turned as the text is, and as high as its capital
// letters, for lines may stand close. Open shadow roots count.

(() => {
  const CAPITALS = 0.72; // height of a capital letter, in font sizes
  const ASIDE = // formulas as read aloud, icons, and the menu where it is put away
    ".katex-mathml, [data-testid=stIconMaterial], [data-testid=stSidebar][data-collapsed=true]";
  const styles = new Map();
  const shown = new Map();

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
    return !(element instanceof SVGElement && styleOf(element).fill === "none") && isShownIn(element);
  }

  /** Whether what stands in this place is drawn: nothing around it hides it. */
  function isShownIn(place) {
    if (!place) return true;
    if (!shown.has(place)) shown.set(place, looksShown(place));
    return shown.get(place);
  }

  function looksShown(place) {
    const { clipPath, clip, display } = styleOf(place);
    if (display === "none") return false; // hidden in a narrow container: Chromium calls it visible
    if (clipPath !== "none" || clip !== "auto") return place instanceof SVGElement; // for screen readers
    return isShownIn(above(place));
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

  return { above, boxesOf, isSeen, lowered, styleOf, within };
})()
