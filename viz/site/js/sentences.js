// The sentences of this folder, by section and key: words/en/browser_site.toml.

import texts from "../../../words/en/browser_site.toml";
import { saying } from "../../explorer/js/words.js";

export const sentencesOf = saying(texts);
