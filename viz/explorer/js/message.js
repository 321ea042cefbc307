// What Python sends: a block of bytes (viz/explorer/packing.py), or the same as text in a saved file.

const READERS = {
  floats: (buffer, start, count) => new Float32Array(buffer, start, count),
  bytes: (buffer, start, count) => new Uint8Array(buffer, start, count),
};

const origins = new WeakMap(); // of a message: the words it was read from, or the object

/** The message with its arrays as typed arrays; `known`, if it says the same. The words name the content of
 *  the arrays (a layer's `digest`), so equal words are equal messages. */
export function unpacked(sent, known) {
  const binary = sent instanceof Uint8Array;
  const length = binary ? new DataView(sent.buffer, sent.byteOffset).getUint32(0, true) : 0;
  const origin = binary ? new TextDecoder().decode(sent.subarray(4, 4 + length)) : sent;
  if (known && origins.get(known) === origin) return known;
  const message = binary ? fromBytes(sent, origin) : revived(sent, fromText);
  origins.set(message, origin);
  return message;
}

function fromBytes(sent, words) {
  const { buffer } = sent.slice(4 + words.length); // its own memory, so that arrays start where floats may
  const read = ({ kind, start, count }) => READERS[kind](buffer, start, count);
  return revived(JSON.parse(words), read);
}

function fromText({ kind, base64 }) {
  const binary = atob(base64);
  const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  return kind === "bytes" ? bytes : new Float32Array(bytes.buffer);
}

/** An object in which every description of an array, at any depth, is replaced by the array. */
function revived(value, read) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  if (value.kind in READERS) return read(value);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, revived(part, read)]));
}
