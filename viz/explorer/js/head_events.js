// How the parts of a page tell each other of a head, { place, head }, through the window.

export const CHOOSE = "choose-head"; // the picture that shows it prevents the default
export const SHOWN = "head-shown";

/** Asks the picture in the browser that can show a head at once; whether there is one. */
export function isShownAtOnce(detail) {
  return !window.dispatchEvent(new CustomEvent(CHOOSE, { detail, cancelable: true }));
}

/** Tells which head a picture shows. */
export function tellShown(detail) {
  window.dispatchEvent(new CustomEvent(SHOWN, { detail }));
}
