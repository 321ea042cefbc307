"""What a browser gets of a shipped model: scripts, for a page opened from a disk may load nothing else.

A model's script calls `attentionModel(name, parts)`, that of GPT-2's tokens `attentionVocabulary(ranks)`. The
page defines both before. House GPT's script has 15.1 MB, that of Stories 1.6, of Induction 0.3, of the tokens
0.9.
"""

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from model.loading.shipped import ASSETS, TOKENIZER, WEIGHTS, is_packed, unpacked
from model.run.tokenizers import GPT2_VOCABULARY
from viz.explorer.layer import floats
from viz.explorer.message import labels
from viz.explorer.packing import Json
from viz.site.model.words import words

if TYPE_CHECKING:
    from model.run.model import Model

MODELS = ("house-gpt", "stories", "induction")  # decoders, which js/pass.js computes
_PROBES = {"induction": "a b c d a b c"}
_PROBE = "the cat saw a dog"  # what all others read


def script(model: "Model") -> str:
    """One model as a script. Raises ValueError for a model that is not one of `MODELS`."""
    return f"attentionModel({_literal(model.name)}, {_literal(parts(model))});\n"


def vocabulary_script() -> str:
    """GPT-2's tokens with their ranks as a script. Models with GPT-2's tokens need it beside their own."""
    return f"attentionVocabulary({_literal(GPT2_VOCABULARY.read_text(encoding='ascii'))});\n"


def _literal(value: object) -> str:
    """A value as JavaScript, which may also stand in a page: it ends no script."""
    return json.dumps(value).replace("<", "\\u003c")


def parts(model: "Model") -> Json:
    """What `openModel` of js/model.js takes.

    The config and the weights (base64 of the file's bytes), the tokenizer and how its tokens are written, the
    words of the messages, and a probe: a text, and the logits of its last token as PyTorch has them (base64
    of little-endian float32).

    Raises ValueError for a model that is not one of `MODELS`.
    """
    if model.name not in MODELS:
        raise ValueError(f"{model.name} does not run in a browser; these do: {', '.join(MODELS)}.")
    folder = ASSETS / model.name
    file = folder / WEIGHTS
    weights = unpacked(file, file) if is_packed(file) else file.read_bytes()
    probe = probe_of(model.name)
    prediction = model.trace(probe).prediction
    if prediction is None:
        raise ValueError(f"{model.name} has no logits.")
    config = json.loads((folder / "config.json").read_bytes())
    return {
        "name": model.name,
        "config": config,
        "weights": b64encode(weights).decode(),
        "tokenizer": json.loads((folder / TOKENIZER).read_bytes()),
        "labels": _written(model),
        "words": words(model),
        "probe": {
            "text": probe,
            "logits": b64encode(floats(prediction.after(-1)).tobytes()).decode(),
        },
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
