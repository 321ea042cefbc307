// The shown map as a PNG with its title, and the numbers of all checkpoints as CSV.

import { element } from "../../../explorer/js/elements.js";
import { quoted, UTF8 } from "../../../explorer/js/save.js";

const HEAD_ROOM = 30; // pixels above the map for its title

function download(name, blob) {
  const href = URL.createObjectURL(blob);
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/** Saves the canvas of the map on the page's own background. */
export function savePicture(name, title, canvas, palette) {
  const ratio = canvas.width / canvas.clientWidth;
  const picture = document.createElement("canvas");
  picture.width = canvas.width;
  picture.height = canvas.height + HEAD_ROOM * ratio;
  const context = picture.getContext("2d");
  context.fillStyle = palette.background;
  context.fillRect(0, 0, picture.width, picture.height);
  context.fillStyle = palette.text;
  context.font = `600 ${14 * ratio}px sans-serif`;
  context.fillText(title, 8 * ratio, 20 * ratio);
  context.drawImage(canvas, 0, HEAD_ROOM * ratio);
  picture.toBlob((blob) => download(`${name}.png`, blob));
}

/** A token as a cell of text that no spreadsheet takes for a formula. */
function sheltered(text) {
  return quoted(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
}

/** Saves one line for each allowed cell of each checkpoint; nine digits are enough to read the same float32. */
export function saveNumbers(name, { steps, queries, keys, maps, allowed }) {
  const lines = ["step,query,query token,key,key token,weight"];
  const size = queries.length * keys.length;
  maps.forEach((weight, n) => {
    const cell = n % size;
    if (allowed !== null && !allowed[cell]) return;
    const [row, column] = [Math.floor(cell / keys.length), cell % keys.length];
    const places = [row, sheltered(queries[row]), column, sheltered(keys[column])];
    lines.push([steps[Math.floor(n / size)], ...places, Number(weight.toPrecision(9))].join());
  });
  download(`${name}.csv`, new Blob([UTF8, `${lines.join("\n")}\n`], { type: "text/csv;charset=utf-8" }));
}
