// The one hot loop of a pass: products of rows with rows, four numbers at a time (WebAssembly's SIMD). The code is
// assembled here, because it is a single function.

const ROWS = 4; // of x, that are multiplied together
const COLUMNS = 2; // rows of the weight, that are
const PAGE = 0x10000; // bytes of one page of memory
const LANE = 16; // bytes that are read at once

// Opcodes (WebAssembly core specification 2.0, appendix "Index of Instructions").
const [LOOP, END, BR_IF, GET, SET, CONST] = [[0x03, 0x40], [0x0b], [0x0d], [0x20], [0x21], [0x41]];
const [I32_ADD, I32_LESS, F32_ADD, F32_STORE] = [[0x6a], [0x49], [0x92], [0x38, 2]];
const [LOAD, TAKE_LANE, ADD, MULTIPLY] = [[0xfd, 0, 2, 0], [0xfd, 0x1f], [0xfd, 0xe4, 1], [0xfd, 0xe6, 1]];
const ZEROS = [0xfd, 0x0c, Array(LANE).fill(0)];
const [I32, V128] = [0x7f, 0x7b];

/** products(x, weight, end, size, out, stride): four rows of x times each row of the weight up to its end, all of
 *  `size` bytes, written to four rows of `out` that are `stride` bytes apart. Arguments are addresses and numbers of
 *  bytes. */
function code() {
  const parameters = ["x", "weight", "end", "size", "out", "stride"];
  const addresses = ["at", "x1", "x2", "x3", "weight1", "row"];
  const cells = [...Array(ROWS * COLUMNS).keys()].map((cell) => `sum${cell}`);
  const vectors = [...cells, "w0", "w1", "u"];
  const names = [...parameters, ...addresses, ...vectors];
  const local = (name) => names.indexOf(name);
  const get = (name) => [GET, local(name)];
  const set = (name, ...made) => [made, SET, local(name)];
  const plus = (one, other) => [get(one), get(other), I32_ADD];
  const load = (name, from) => set(name, plus(from, "at"), LOAD);
  const add = (sum, weight) => set(sum, get(sum), get("u"), get(weight), MULTIPLY, ADD);
  const lane = (sum, n) => [get(sum), TAKE_LANE, n];
  const total = (sum) => [lane(sum, 0), lane(sum, 1), F32_ADD, lane(sum, 2), lane(sum, 3), F32_ADD, F32_ADD];
  const ofRow = (row) => cells.slice(row * COLUMNS, (row + 1) * COLUMNS);
  const body = [
    [set("x1", plus("x", "size")), set("x2", plus("x1", "size")), set("x3", plus("x2", "size"))],
    LOOP,
    cells.map((sum) => set(sum, ZEROS)),
    [set("weight1", plus("weight", "size")), set("at", CONST, 0)],
    LOOP,
    [load("w0", "weight"), load("w1", "weight1")],
    ["x", "x1", "x2", "x3"].map((x, row) => [load("u", x), ofRow(row).map((sum, n) => add(sum, `w${n}`))]),
    set("at", get("at"), CONST, LANE, I32_ADD),
    [get("at"), get("size"), I32_LESS, BR_IF, 0],
    END,
    set("row", get("out")),
    [0, 1, 2, 3].map((row) => [
      ofRow(row).map((sum, n) => [get("row"), total(sum), F32_STORE, 4 * n]),
      set("row", plus("row", "stride")),
    ]),
    set("out", get("out"), CONST, 4 * COLUMNS, I32_ADD),
    set("weight", plus("weight1", "size")),
    [get("weight"), get("end"), I32_LESS, BR_IF, 0],
    END,
    END,
  ];
  const locals = [2, addresses.length, I32, vectors.length, V128];
  const section = (id, ...content) => [id, sized(content)];
  return Uint8Array.from(
    [
      [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      section(1, 1, 0x60, parameters.length, parameters.map(() => I32), 0), // one type: takes numbers, returns nothing
      section(2, 1, sized(letters("own")), sized(letters("memory")), 2, 0, 1), // the memory is ours
      section(3, 1, 0),
      section(7, 1, sized(letters("products")), 0, 0),
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

/** Memory for numbers: `parts`, a Float32Array for each of the sizes, and `linear`, which multiplies with them.
 *  longest: numbers of the largest input and of the largest output. Raises a RangeError where there is not so much
 *  memory. */
export function kernel(sizes, longest) {
  const room = (size) => LANE * Math.ceil((4 * size) / LANE);
  const all = [longest, longest, ...sizes];
  const bytes = all.reduce((sum, size) => sum + room(size), 0);
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
  const { products } = new WebAssembly.Instance(new WebAssembly.Module(code()), { own: { memory } }).exports;
  let start = 0;
  const [input, output, ...parts] = all.map((size) => {
    const part = new Float32Array(memory.buffer, start, size);
    start += room(size);
    return part;
  });

  /** x Wᵀ + b: x (rows, width), weight (outputs, width), one of the parts, bias (outputs) or null. The last rows are
   *  multiplied together with what lies behind them. Raises an Error for a width that 4 does not divide, and for an
   *  odd number of outputs. */
  function linear(x, width, weight, bias = null) {
    const outputs = weight.length / width;
    if (width % 4 || outputs % COLUMNS) throw new Error(`A map from ${width} to ${outputs} numbers cannot run here.`);
    input.set(x);
    const [rows, size, stride, first] = [x.length / width, 4 * width, 4 * outputs, weight.byteOffset];
    for (let row = 0; row < rows; row += ROWS) {
      const [from, to] = [input.byteOffset + row * size, output.byteOffset + row * stride];
      products(from, first, first + weight.byteLength, size, to, stride);
    }
    const made = output.slice(0, rows * outputs);
    if (bias === null) return made;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < outputs; column++) made[row * outputs + column] += bias[column];
    }
    return made;
  }
  return { parts, linear };
}
