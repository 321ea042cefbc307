"""What a browser gets of a shipped model, as messages that `viz.explorer.packing` packs."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from model.loading.shipped import ASSETS, TOKENIZER, WEIGHTS, is_packed, unpacked
from model.nn.intervention import Intervention
from model.run.tokenizers import gpt2
from viz.explorer.heads import THEME, all_heads
from viz.explorer.layer import floats
from viz.explorer.message import labels
from viz.explorer.packing import Json
from viz.notation.words import sentences_of
from viz.site.model.words import words
from viz.state.intervention_words import parts as said_of

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("site.model_parts")

MODELS = ("house-gpt", "stories", "induction", "translate-en-fr")  # which js/pass.js computes
CHANGES = {  # which js/pass.js makes beside heads left out, in the order in which they are named
    "scale": Intervention(scale=1.0),
    "mask": Intervention(mask="none"),
    "positions": Intervention(positions=False),
}
_PROBES = {"induction": "a b c d a b c", "translate-en-fr": say("cat_sees_black_dog")}
_PROBE = say("cat_saw_dog")  # what all others read


def has_gpt2s_tokens(name: str) -> bool:
    """Whether a browser needs `vocabulary` beside the parts of a shipped model."""
    kind: str = json.loads((ASSETS / name / TOKENIZER).read_bytes())["kind"]
    return kind != "words"


def vocabulary() -> Json:
    """GPT-2's tokens in the order of their ranks, each a text with a letter for each byte."""
    encoding = gpt2()
    tokens = map(encoding.decode_single_token_bytes, range(encoding.eot_token))
    return {"tokens": [token.decode("latin-1") for token in tokens]}


def parts(model: "Model") -> Json:
    """What `openModel` of js/model.js takes.

    The config and the weights (the bytes of the file, numbers of 16 bits), the tokenizer and how its tokens
    are written, the words of the messages and of what is changed, all heads for the picker, and a probe: a
    text, and the logits of its last token as PyTorch has them (float32).

    Raises ValueError for a model that is not one of `MODELS`.
    """
    if model.name not in MODELS:
        raise ValueError(f"{model.name} does not run in a browser; these do: {', '.join(MODELS)}.")
    folder = ASSETS / model.name
    file = folder / WEIGHTS
    weights = unpacked(file, file) if is_packed(file) else file.read_bytes()
    trace = model.trace(probe_of(model.name))
    if trace.prediction is None:
        raise ValueError(f"{model.name} has no logits.")
    return {
        "name": model.name,
        "config": json.loads((folder / "config.json").read_bytes()),
        "weights": np.frombuffer(weights, np.uint8),
        "tokenizer": json.loads((folder / TOKENIZER).read_bytes()),
        "labels": _written(model),
        "words": words(model),
        "said": {name: said.words for name, change in CHANGES.items() for said in said_of(change)},
        "heads": {"families": all_heads(trace), "theme": THEME},
        "probe": {"text": trace.text, "logits": floats(trace.prediction.after(-1))},
    }


def probe_of(name: str) -> str:
    """The text by which a browser tells how far its numbers are from PyTorch's."""
    return _PROBES.get(name, _PROBE)


def _written(model: "Model") -> Json:
    """How each token of the vocabulary is written: `text` by id, and as `labels` writes it where that differs
    from the text (`full`), or from `full` (`short`, `plotly`), as a map from ids."""
    texts = [token.text for token in model.tokenizer.named(range(model.tokenizer.size))]
    written: dict[str, Any] = labels(texts)

    def others(name: str, base: list[str]) -> dict[int, str]:
        return {id_: one for id_, one in enumerate(written[name]) if one != base[id_]}

    of_full = {name: others(name, written["full"]) for name in ("short", "plotly")}
    return {"text": texts, "full": others("full", texts), **of_full}
