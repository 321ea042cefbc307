// How the parts of a page tell each other of a head, { place, head }, through a channel: the window, or in a
// notebook an object of each view.

export const CHOOSE = "choose-head"; // the picture that shows it prevents the default
export const SHOWN = "head-shown";

/** Asks the picture in the browser that can show a head at once; whether there is one. */
export function isShownAtOnce(detail, channel = window) {
  return !channel.dispatchEvent(new CustomEvent(CHOOSE, { detail, cancelable: true }));
}

/** Tells which head a picture shows. */
export function tellShown(detail, channel = window) {
  channel.dispatchEvent(new CustomEvent(SHOWN, { detail }));
}
