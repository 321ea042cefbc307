"""The models whose listings are tried: our own, tiny ones of the hub's families, and variants of these."""

from functools import cache
from pathlib import Path
from typing import Any

from model import Model, load_model
from model.trace.trace import Trace
from tests.model import hub_models, tiny
from tests.model.hub_models import FAMILIES, TEXT, build, save

OWN = {
    "house-gpt": "Tom Hill saw a red ball. Anna gave the ball to Tom",
    "stories": "Tom Hill saw a red ball. Anna gave the ball to Tom",
    "induction": "q f m b q f m b q",
    "translate-en-fr": "the black cat sees the dog",
    "minilm": "The animal was too tired to cross the street",
    "all-stages": "Tom Hill saw a red ball. Anna gave the ball to Tom",
}
# Of these the listing is refused with a sentence: windows, norms on what sub-layers write, factors, biases,
# queries, keys and values in one map whose order nobody names.
REFUSED = (
    *("mistral", "olmo2", "cohere", "granite", "gemma3", "modernbert"),
    *("t5", "flan-t5", "mt5", "bloom", "mpt", "falcon, ALiBi", "deberta-v3", "mpnet"),
    *("gpt_neo", "codegen"),
)
HUB = [family for family in FAMILIES if family not in REFUSED]
CLOSE = 1e-5  # of the largest number of a result


@cache
def opened(name: str) -> tuple[Model, Trace]:
    """A model and one pass of it, for all tests: none changes them."""
    model = hub_models.loaded(name) if name in HUB else tiny.loaded(name)
    return model, model.trace(OWN.get(name, TEXT), record="full")


def variant(folder: Path, family: str, kind: str, **choices: Any) -> tuple[Model, Trace]:
    """A model with the sizes of a family and choices of its own. kind: its class, without the ending."""
    sizes = FAMILIES[family][2]
    body = build(f"{kind}ForCausalLM", f"{kind}Config", {**sizes, **choices})
    model = load_model(str(save(folder, body, adds=False)), device="cpu")
    return model, model.trace(TEXT, record="full")
