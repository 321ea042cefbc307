// A saved picture's certificate: what its numbers were made from, and the numbers, inside the file. The command
// `attention-lens check` (viz/saving/certificate.py) makes them again.

import { isHidden } from "./paint.js";
import { pdfOf } from "./pdf.js";

const KEY = "attention-lens";
const MOST = 2 ** 16; // cells of a panel; of more, every n-th row and column
const END_OF_PNG = 12; // bytes of its last chunk
const PNG = "data:image/png;base64,";
export const SVG = "data:image/svg+xml,";

/** What is said of a figure in its file. `run`: model, weights and link of the run, from Python; the code to scan is
 *  drawn, not said. */
export function certificateOf({ scan, ...run }, view, { panels, runs }) {
  const { rows, columns } = panels[0];
  const step = Math.ceil(Math.sqrt(Math.max(1, (rows * columns) / MOST)));
  return {
    made_by: KEY,
    ...run,
    ...view,
    rows,
    columns,
    step,
    panels: panels.map((panel, n) => [runs?.[n] ?? "unchanged", base64(bytesOf(cellsOf(panel, step)))]),
  };
}

/** Every step-th number of a panel in each direction; NaN where a cell is masked. */
function cellsOf(panel, step) {
  const cells = [];
  for (let row = 0; row < panel.rows; row += step) {
    for (let column = 0; column < panel.columns; column += step) {
      const cell = row * panel.columns + column;
      cells.push(isHidden(panel, cell) ? NaN : panel.values[cell]);
    }
  }
  return Float32Array.from(cells);
}

/** In the order that Python reads: the lowest byte first, whatever this processor does. */
function bytesOf(numbers) {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  numbers.forEach((number, n) => view.setFloat32(4 * n, number, true));
  return new Uint8Array(view.buffer);
}

/** The address of a picture, with its certificate in it. */
export function certified(address, certificate) {
  const text = JSON.stringify(certificate);
  if (address.startsWith(PNG)) return PNG + base64(inPng(bytesIn(address.slice(PNG.length)), text));
  return SVG + encodeURIComponent(inSvg(decodeURIComponent(address.slice(SVG.length)), text));
}

/** The parts of a PDF of a picture, its certificate attached. address: of an SVG. */
export function certifiedPdf(address, certificate) {
  return pdfOf(address, `${KEY}.json`, certificate ? JSON.stringify(certificate) : null);
}

/** An image of PNG with a chunk of international text (PNG, third edition, 11.3.3.4) before its end. */
function inPng(image, text) {
  const content = new TextEncoder().encode(`iTXt${KEY}\0\0\0\0\0${text}`);
  const chunk = new Uint8Array(content.length + 8);
  const numbers = new DataView(chunk.buffer);
  numbers.setUint32(0, content.length - 4); // without the four letters of its kind
  chunk.set(content, 4);
  numbers.setUint32(chunk.length - 4, crc32(content));
  const end = image.length - END_OF_PNG;
  return joined(image.subarray(0, end), chunk, image.subarray(end));
}

function inSvg(image, text) {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return image.replace(/<svg[^>]*>/, (tag) => `${tag}<metadata id="${KEY}">${escaped}</metadata>`);
}

/** The checksum of a chunk (ISO 3309). */
function crc32(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ 0xffffffff) >>> 0;
}

function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function base64(bytes) {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
}

function bytesIn(letters) {
  return Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
}
