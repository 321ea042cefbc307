// A picture as a PDF of one page of its size (ISO 32000-1), with a file attached.

const POINTS = 0.75; // of a CSS pixel
const DENSITY = 4; // pixels of the PDF for each CSS pixel: 384 an inch

/** The parts of a PDF. image: the address of an SVG. attached: the text of the file `name` in it; null: none. */
export async function pdfOf(image, name, attached) {
  const { width, height, pixels } = await pixelsOf(image);
  const [wide, high] = [width, height].map((size) => (size / DENSITY) * POINTS);
  const picture = `/Type /XObject /Subtype /Image /Width ${width} /Height ${height} /ColorSpace /DeviceRGB`;
  const files = attached && `/Names << /EmbeddedFiles << /Names [(${name}) 6 0 R] >> >>`;
  const objects = [
    [`<< /Type /Catalog /Pages 2 0 R ${files ?? ""} >>`],
    ["<< /Type /Pages /Kids [3 0 R] /Count 1 >>"],
    [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${wide} ${high}] /Contents 4 0 R ` +
        "/Resources << /XObject << /Picture 5 0 R >> >> >>",
    ],
    stream("", bytes(`${wide} 0 0 ${high} 0 0 cm /Picture Do`)),
    stream(`${picture} /BitsPerComponent 8 /Filter /FlateDecode`, await deflated(pixels)),
  ];
  if (attached) {
    objects.push([`<< /Type /Filespec /F (${name}) /UF (${name}) /EF << /F 7 0 R >> >>`]);
    objects.push(stream("/Type /EmbeddedFile /Subtype /application#2Fjson", bytes(attached)));
  }
  return numbered(objects);
}

function stream(about, content) {
  return [`<< ${about} /Length ${content.length} >>\nstream\n`, content, "\nendstream"];
}

/** The parts of a file: its objects, and the table of where each begins. */
function numbered(objects) {
  const parts = [bytes("%PDF-1.7\n%âãÏÓ\n")];
  let at = parts[0].length;
  const starts = objects.map((object, n) => {
    const start = at;
    for (const part of [`${n + 1} 0 obj\n`, ...object, "\nendobj\n"].map(bytes)) {
      parts.push(part);
      at += part.length;
    }
    return `${String(start).padStart(10, "0")} 00000 n \n`;
  });
  const count = objects.length + 1;
  const table = `xref\n0 ${count}\n0000000000 65535 f \n${starts.join("")}`;
  parts.push(bytes(`${table}trailer\n<< /Size ${count} /Root 1 0 R >>\nstartxref\n${at}\n%%EOF\n`));
  return parts;
}

function bytes(text) {
  return typeof text === "string" ? new TextEncoder().encode(text) : text;
}

/** Its size in pixels, and red, green and blue of each. */
async function pixelsOf(address) {
  const { width, height, context } = await rasterOf(address, DENSITY);
  const { data } = context.getImageData(0, 0, width, height);
  const pixels = new Uint8Array(width * height * 3);
  for (let from = 0, to = 0; from < data.length; from += 4) {
    pixels[to++] = data[from];
    pixels[to++] = data[from + 1];
    pixels[to++] = data[from + 2];
  }
  return { width, height, pixels };
}

/** The canvas on which an image is drawn with so many pixels for each CSS pixel. */
export async function rasterOf(address, density) {
  const image = new Image();
  image.src = address;
  await image.decode();
  const [width, height] = [image.naturalWidth, image.naturalHeight].map((size) => Math.round(size * density));
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, width, height);
  return { canvas, context, width, height };
}

async function deflated(content) {
  const packed = new Blob([content]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}
