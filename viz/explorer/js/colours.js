// Colour scales, made of the theme's stops and the page's background.

import { whenRead } from "./when_read.js";

const STEPS = 256;

/** [red, green, blue] of a CSS colour. */
function rgb(colour) {
  const hex = /^#([0-9a-f]{6})/i.exec(colour);
  if (hex) return [0, 2, 4].map((start) => parseInt(hex[1].slice(start, start + 2), 16));
  const short = /^#([0-9a-f]{3})$/i.exec(colour);
  if (short) return [...short[1]].map((digit) => parseInt(digit + digit, 16));
  const parts = colour.match(/[\d.]+/g);
  return parts && parts.length >= 3 ? parts.slice(0, 3).map(Number) : [255, 255, 255];
}

/** A colour as one 32-bit number of an image's memory: red first, in any byte order. */
function pixel(...channels) {
  return new Uint32Array(Uint8Array.of(...channels, 255).buffer)[0];
}

function css([red, green, blue]) {
  return `rgb(${red}, ${green}, ${blue})`;
}

/** The relative luminance of a colour, 0 to 1 (WCAG 2). */
export function luminance([red, green, blue]) {
  const [r, g, b] = [red, green, blue].map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The page's colours and every quantity's scale, for a light or a dark page. Returns `known` if the page's style
 *  has not changed. */
export function paletteOf(host, theme, known) {
  const style = getComputedStyle(host);
  const read = (name, otherwise) => {
    const value = style.getPropertyValue(name).trim();
    return value && value !== "unset" ? value : otherwise;
  };
  const background = read("--st-background-color", "#ffffff");
  const signature = [background, read("--st-text-color", ""), read("--st-code-font", "")].join();
  if (signature === known?.signature) return known;
  const dark = luminance(rgb(background)) < 0.4;
  const palette = {
    signature,
    dark,
    background,
    text: read("--st-text-color", dark ? "#eeeeee" : "#222222"),
    mono: read("--st-code-font", "monospace"),
    masked: theme.masked,
    ink: {},
    hue: {},
  };
  palette.scale = whenRead((name) => scaleOf(theme.quantities[name][dark ? "dark" : "light"], background)); // few are seen
  for (const [name, quantity] of Object.entries(theme.quantities)) {
    palette.ink[name] = quantity.ink[dark ? 1 : 0];
    palette.hue[name] = quantity.hue;
  }
  return palette;
}

/** A scale: its stops for CSS and Plotly, and a table of 256 colours for pixels. */
function scaleOf(stops, background) {
  const filled = stops.map(([place, colour]) => [place, rgb(colour || background)]);
  const colours = Array.from({ length: STEPS }, (_, n) => colourAt(filled, n / (STEPS - 1)));
  const ramp = filled.map(([place, colour]) => `${css(colour)} ${place * 100}%`);
  return {
    colours,
    pixels: Uint32Array.from(colours, (colour) => pixel(...colour)),
    plotly: filled.map(([place, colour]) => [place, css(colour)]),
    gradient: `linear-gradient(to right, ${ramp.join(", ")})`,
  };
}

function colourAt(stops, share) {
  const next = Math.max(stops.findIndex(([place]) => place >= share), 1);
  const [[from, first], [to, second]] = stops.slice(next - 1);
  const way = (share - from) / (to - from);
  return first.map((channel, n) => Math.round(channel + (second[n] - channel) * way));
}

/** The index of a value's colour in `scale.colours`. */
function step(value, low, high) {
  const share = high > low ? (value - low) / (high - low) : 0.5;
  return Math.round(Math.min(Math.max(share, 0), 1) * (STEPS - 1));
}

/** Colours the pixels of an image by their values, three times as fast as with `step`. A pixel whose value is
 *  NaN stays as it is. */
export function colourPixels(pixels, values, scale, { low, high }) {
  const last = STEPS - 1;
  const [slope, start] = high > low ? [last / (high - low), 0.5] : [0, last / 2 + 0.5];
  for (let n = 0; n < pixels.length; n++) {
    const value = values[n];
    if (Number.isNaN(value)) continue;
    const at = (value - low) * slope + start;
    pixels[n] = scale.pixels[at > last ? last : at > 0 ? at | 0 : 0];
  }
}

/** A value's colour as CSS, and a colour for letters on it. */
export function inkedColour(scale, value, low, high) {
  const colour = scale.colours[step(value, low, high)];
  return { background: css(colour), ink: luminance(colour) > 0.3 ? "#17151c" : "#ffffff" };
}
