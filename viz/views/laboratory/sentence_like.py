"""The sentence B that a map of patches begins with: sentence A with one word exchanged."""

import re
from typing import TYPE_CHECKING

from model.training.micro_stories import WORDS
from viz.state.presets import PATCHES

if TYPE_CHECKING:
    from model.run.model import Model

_WORD = re.compile(r"\w+")


def sentence_like(model: "Model", text: str) -> str:
    """Sentence B: that of an example; else a name, or a word of the stories, is exchanged for another of its
    kind, with as many tokens; else the first two words change places."""
    for preset in PATCHES:
        if (preset.view.model, preset.view.text) == (model.name, text):
            return preset.view.second_text
    found = _WORD.findall(text)
    length = len(model.tokens(text))
    for kind in sorted(WORDS, key=lambda kind: kind != "surnames"):
        for word in found:
            if word not in WORDS[kind] or found.count(word) > 1:
                continue
            for another in WORDS[kind]:
                changed = re.sub(rf"\b{word}\b", another, text)
                if another not in found and len(model.tokens(changed)) == length:
                    return changed
    first, second, *rest = [*text.split(), "", ""]
    return " ".join([second, first, *rest]).strip()
