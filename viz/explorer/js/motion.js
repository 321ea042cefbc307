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

/** Slow at both ends. */
export function eased(share) {
  return share * share * (3 - 2 * share);
}

/** Whether the reader wants nothing to move. */
export function isStill() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
