// A shipped model's weights: the bytes of its model.safetensors, 16-bit numbers, as 32-bit ones.

import { kernel } from "./kernel.js";

const PAIR = 0x10000; // 16-bit numbers there are

/** Every 16-bit float as a 32-bit one (IEEE 754). */
function halves() {
  const floats = new Float32Array(PAIR);
  for (let bits = 0; bits < PAIR; bits++) {
    const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
    const tiny = exponent === 0;
    floats[bits] = sign * 2 ** (tiny ? -14 : exponent - 15) * (fraction / 1024 + (tiny ? 0 : 1));
  }
  return floats;
}

/** The tensors of a file by name, each a Float32Array, and the `linear` that multiplies with them (kernel.js).
 *  longest: numbers of the largest input. Raises an Error for other numbers than 16-bit floats. */
export function weightsOf(bytes, longest) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const { __metadata__: _, ...described } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const places = Object.values(described).map(({ data_offsets }) => data_offsets.map((at) => 8 + length + at));
  const { parts, linear } = kernel(places.map(([start, end]) => (end - start) / 2), longest);
  const floats = halves();
  const tensors = Object.entries(described).map(([name, { dtype }], n) => {
    if (dtype !== "F16") throw new Error(`${name} has numbers of the type ${dtype}.`);
    const numbers = new Uint16Array(bytes.slice(...places[n]).buffer);
    for (let at = 0; at < numbers.length; at++) parts[n][at] = floats[numbers[at]];
    return [name, parts[n]];
  });
  return { tensors: Object.fromEntries(tensors), linear };
}
