// Files of words/en, as esbuild puts them into the bundle: as their text.

/** Sections and their sentences in a file of words/en, as the words' own writer makes it: a line for each. */
function sections(file) {
  const read = {};
  for (const line of file.split("\n")) {
    const [, section, key, text] = line.match(/^\[(\w+)\]$|^(\w+) = (".*")$/) ?? [];
    if (section) read.last = read[section] = {};
    else if (key) read.last[key] = JSON.parse(text);
  }
  return read;
}

/** For each section what gives its sentence of a key, with a value for each slot `{$name}`. */
export function saying(file) {
  const read = sections(file);
  return (section) => (key, slots = {}) => read[section][key].replace(/\{\$(\w+)\}/g, (_, name) => slots[name]);
}
