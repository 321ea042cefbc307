// What moves, frame by frame. Nothing loops, and where nothing may move it is at its end at once.

const LONGEST = 50; // milliseconds that one step counts: on a slow machine nothing is skipped

/** Calls `step` in every frame with the milliseconds since the one before, as long as it returns true. Returns a
 *  function that ends it. */
export function inSteps(step) {
  let [before, frame] = [null, null];
  const tick = (now) => {
    const passed = before === null ? 0 : Math.min(now - before, LONGEST);
    before = now;
    if (step(passed)) frame = requestAnimationFrame(tick);
  };
  frame = requestAnimationFrame(tick);
  return () => cancelAnimationFrame(frame);
}

/** Lets each number of the page that says what it was, in `data-was`, run from there to what it is. */
export function runNumbers(share) {
  for (const one of document.querySelectorAll("[data-was]")) {
    const text = (one.dataset.is ??= one.textContent);
    const [was, is] = [one.dataset.was, text].map(Number);
    const digits = text.split(".")[1]?.length ?? 0;
    if (share < 1 && Number.isFinite(was + is)) one.textContent = (was + (is - was) * share).toFixed(digits);
    else one.textContent = text;
    if (share >= 1) delete one.dataset.is;
  }
}

/** Lets none of the numbers that stand on the page run any more. */
export function stopNumbers() {
  for (const one of document.querySelectorAll("[data-was]")) delete one.dataset.was;
}

/** Slow at both ends. */
export function eased(share) {
  return share * share * (3 - 2 * share);
}

/** Whether the reader wants nothing to move. */
export function isStill() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
