// The one hot loop of a pass: dot products of rows, four numbers at a time (WebAssembly's SIMD). The code is
// assembled here, because it is a single function.

const ROWS = 4; // of x in a tile
const COLUMNS = 2; // rows of the weight in a tile
const PAGE = 0x10000; // bytes of one page of memory
const LANE = 16; // bytes that are read at once

// Opcodes (WebAssembly core specification 2.0, appendix "Index of Instructions").
const [LOOP, END, BR_IF, GET, SET, CONST] = [[0x03, 0x40], [0x0b], [0x0d], [0x20], [0x21], [0x41]];
const [I32_ADD, I32_LESS, F32_ADD, F32_STORE] = [[0x6a], [0x49], [0x92], [0x38, 2]];
const [LOAD, TAKE_LANE, ADD, MULTIPLY] = [[0xfd, 0, 2, 0], [0xfd, 0x1f], [0xfd, 0xe4, 1], [0xfd, 0xe6, 1]];
const [I32, V128] = [0x7f, 0x7b];

/** tile(x0, …, x3, w0, w1, bytes, out): the products of each of four rows with each of two, all of so many bytes,
 *  written one after the other. Arguments are addresses. */
function code() {
  const [w, bytes, out] = [ROWS, ROWS + COLUMNS, ROWS + COLUMNS + 1];
  const parameters = out + 1;
  const cells = ROWS * COLUMNS;
  const [at, sums] = [parameters, parameters + 1];
  const [weights, x] = [sums + cells, sums + cells + COLUMNS];
  const rows = [...Array(ROWS).keys()];
  const columns = [...Array(COLUMNS).keys()];
  const load = (from, into) => [GET, from, GET, at, I32_ADD, LOAD, SET, into];
  const add = (sum, column) => [GET, sum, GET, x, GET, weights + column, MULTIPLY, ADD, SET, sum];
  const rowOf = (row) => [load(row, x), columns.map((column) => add(sums + row * COLUMNS + column, column))];
  const lane = (sum, n) => [GET, sum, TAKE_LANE, n];
  const total = (sum) => [lane(sum, 0), lane(sum, 1), F32_ADD, lane(sum, 2), lane(sum, 3), F32_ADD, F32_ADD];
  const store = (_, cell) => [GET, out, total(sums + cell), F32_STORE, 4 * cell];
  const body = [
    LOOP,
    [columns.map((column) => load(w + column, weights + column)), rows.map(rowOf)],
    [GET, at, CONST, LANE, I32_ADD, SET, at],
    [GET, at, GET, bytes, I32_LESS, BR_IF, 0],
    END,
    [...Array(cells)].map(store),
    END,
  ];
  const locals = [2, 1, I32, cells + COLUMNS + 1, V128];
  const section = (id, ...content) => [id, sized(content)];
  return Uint8Array.from(
    [
      [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      section(1, 1, 0x60, parameters, Array(parameters).fill(I32), 0), // one type: takes numbers, returns nothing
      section(2, 1, sized(letters("own")), sized(letters("memory")), 2, 0, 1), // the memory is ours
      section(3, 1, 0),
      section(7, 1, sized(letters("tile")), 0, 0),
      section(10, 1, sized([locals, body])),
    ].flat(Infinity),
  );
}

const letters = (word) => Array.from(word, (letter) => letter.charCodeAt(0));

/** Bytes after their number (LEB128). */
function sized(content) {
  const bytes = content.flat(Infinity);
  return [...unsigned(bytes.length), ...bytes];
}

function unsigned(number) {
  return number < 128 ? [number] : [(number & 127) | 128, ...unsigned(number >> 7)];
}

const compiled = new WebAssembly.Module(code());

/** Memory for numbers: `parts`, a Float32Array for each of the sizes, and `linear`, which multiplies with them.
 *  longest: numbers of the largest input. Raises a RangeError where there is not so much memory. */
export function kernel(sizes, longest) {
  const room = (size) => LANE * Math.ceil((4 * size) / LANE);
  const all = [ROWS * COLUMNS, longest, ...sizes];
  const bytes = all.reduce((sum, size) => sum + room(size), 0);
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
  const { tile } = new WebAssembly.Instance(compiled, { own: { memory } }).exports;
  let start = 0;
  const [products, input, ...parts] = all.map((size) => {
    const part = new Float32Array(memory.buffer, start, size);
    start += room(size);
    return part;
  });

  /** x Wᵀ + b: x (rows, width), weight (outputs, width), one of the parts, bias (outputs) or null. 4 divides the width.
   *  Past the last row or column of a tile the last one is computed again. */
  function linear(x, width, weight, bias = null) {
    input.set(x);
    const rows = x.length / width;
    const outputs = weight.length / width;
    const made = new Float32Array(rows * outputs);
    const at = (row) => input.byteOffset + 4 * width * Math.min(row, rows - 1);
    const of = (column) => weight.byteOffset + 4 * width * Math.min(column, outputs - 1);
    for (let j = 0; j < outputs; j += COLUMNS) {
      for (let i = 0; i < rows; i += ROWS) {
        tile(at(i), at(i + 1), at(i + 2), at(i + 3), of(j), of(j + 1), 4 * width, products.byteOffset);
        for (let row = i; row < Math.min(i + ROWS, rows); row++) {
          for (let column = j; column < Math.min(j + COLUMNS, outputs); column++) {
            const product = products[(row - i) * COLUMNS + column - j];
            made[row * outputs + column] = bias === null ? product : product + bias[column];
          }
        }
      }
    }
    return made;
  }
  return { parts, linear };
}
