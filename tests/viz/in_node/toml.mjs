// Node imports files of words as esbuild does in the bundle: as their text.

import { readFile } from "node:fs/promises";
import { register } from "node:module";

register(import.meta.url);

export async function load(url, context, next) {
  if (!url.endsWith(".toml")) return next(url, context);
  const text = await readFile(new URL(url), "utf8");
  return { format: "module", shortCircuit: true, source: `export default ${JSON.stringify(text)};` };
}
