// KaTeX from its own text: a notebook has no address where it could be found.

import { styled } from "../../explorer/js/libraries.js";

// Where a page has a loader of AMD modules, as old notebooks have, KaTeX would go there.
const BEFORE = "const exports = {}, module = { exports }, define = undefined;\n";
const AFTER = "\nexport default module.exports;";

/** KaTeX, as `loadKatex` has it. */
export async function katexOf(script, style) {
  const address = URL.createObjectURL(new Blob([BEFORE, script, AFTER], { type: "text/javascript" }));
  const { default: katex } = await import(/* webpackIgnore: true */ address);
  URL.revokeObjectURL(address);
  return styled(katex, style);
}
