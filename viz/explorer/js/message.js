// What Python sends: a block of bytes (viz/explorer/packing.py).

const ARRAYS = { floats: Float32Array, bytes: Uint8Array };
const origins = new WeakMap(); // of a message: the words it was read from

/** The message with its arrays as typed arrays. Returns `known` if that has the same words: they contain a digest
 *  of the arrays. */
export function unpacked(block, known) {
  const length = new DataView(block.buffer, block.byteOffset).getUint32(0, true);
  const words = new TextDecoder().decode(block.subarray(4, 4 + length));
  if (known && origins.get(known) === words) return known;
  const { buffer } = block.slice(4 + length); // copied, so that the arrays are aligned
  const message = JSON.parse(words, (_, value) => {
    const Kind = ARRAYS[value?.kind];
    return Kind ? new Kind(buffer, value.start, value.count) : value;
  });
  origins.set(message, words);
  return message;
}
