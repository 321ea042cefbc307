// The sentences of the explorer, by section and key: words/en/browser_explorer.toml.

import texts from "../../../words/en/browser_explorer.toml";
import { saying } from "./words.js";

export const sentencesOf = saying(texts);
