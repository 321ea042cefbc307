"""Tiny random models whose tokens are attacks: each one whole, as no ordinary tokenizer cuts it.

What a real vocabulary tears into harmless pieces stands here in one label, one table cell, one tick.
"""

from functools import cache
from pathlib import Path
from typing import Any

import transformers
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from tests.folders import new_folder
from tests.hostile.attacks import ATTACKS
from tests.model.hub_models import FAMILIES, SPECIAL, WORDS, build, save_tokenizer

PLACES = 128  # tokens that they read


@cache
def hostile_folder(family: str) -> Path:
    """The folder of a model of a family ("llama", "bert", "bart"), in the hub's layout."""
    transformers.logging.disable_progress_bar()
    kind, settings, choices = FAMILIES[family]
    spelled = [*SPECIAL, *WORDS]
    sizes: dict[str, Any] = {
        **choices,
        "vocab_size": len(spelled) + len(ATTACKS),
        "max_position_embeddings": PLACES,
    }
    folder = new_folder(f"hostile-{family}")
    build(kind, settings, sizes).save_pretrained(folder)
    tokenizer = Tokenizer(
        models.WordLevel({word: id_ for id_, word in enumerate(spelled)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in ATTACKS])
    save_tokenizer(folder, tokenizer)
    return folder
