// What Python sends: a block of bytes (viz/explorer/packing.py).

const ARRAYS = { floats: Float32Array, bytes: Uint8Array };
const origins = new WeakMap(); // of a message: the words and the arrays it was read from

/** The message with its arrays as typed arrays. Returns `known` if that has the same words: they contain a digest
 *  of the arrays. `before`: the message that this one comes after, where it has arrays of that one. */
export function unpacked(block, known, before) {
  const length = new DataView(block.buffer, block.byteOffset).getUint32(0, true);
  const words = new TextDecoder().decode(block.subarray(4, 4 + length));
  if (known && origins.get(known)?.words === words) return known;
  const { buffer } = block.slice(4 + length); // copied, so that the arrays are aligned
  const earlier = before ? origins.get(before).buffer : new ArrayBuffer(0);
  const arrayOf = ({ kind, start, count }) => {
    const isHere = start >= earlier.byteLength;
    return isHere ? new ARRAYS[kind](buffer, start - earlier.byteLength, count) : new ARRAYS[kind](earlier, start, count);
  };
  const message = withArrays(JSON.parse(words), arrayOf);
  origins.set(message, { words, buffer });
  return message;
}

/** A message with its arrays, put where they belong. JSON.parse's own way to revive values takes several times as long. */
function withArrays(value, arrayOf) {
  if (value === null || typeof value !== "object") return value;
  if (value.kind in ARRAYS) return arrayOf(value);
  for (const [name, part] of Object.entries(value)) {
    const made = withArrays(part, arrayOf);
    if (made !== part) value[name] = made;
  }
  return value;
}
