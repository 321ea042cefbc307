// The shown map as a PNG with its title, and the numbers of all checkpoints as CSV.

const HEAD_ROOM = 30; // pixels above the map for its title

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Saves the canvas of the map on the page's own background. */
function savePicture(name, title, canvas, palette) {
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

/** A token as a cell of text: quoted, and never a formula to a spreadsheet. */
function quoted(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** Saves one line for each allowed cell of each checkpoint; nine digits are enough to read the same float32. */
function saveNumbers(name, { steps, queries, keys, maps, cells }) {
  const lines = ["step,query,query token,key,key token,weight"];
  steps.forEach((step, at) =>
    queries.forEach((query, row) =>
      keys.forEach((key, column) => {
        const cell = row * keys.length + column;
        if (cells.allowed !== null && !cells.allowed[cell]) return;
        const weight = maps[at * queries.length * keys.length + cell];
        lines.push([step, row, quoted(query), column, quoted(key), Number(weight.toPrecision(9))].join());
      }),
    ),
  );
  download(`${name}.csv`, new Blob([`${lines.join("\n")}\n`], { type: "text/csv;charset=utf-8" }));
}
