"""Of each kind of model one, small where only its shape matters, and a text that it knows."""

from tests.model.hub_models import TEXT as OF_HUB_MODELS
from tests.model.hub_models import saved

TEXT = "The animal did not cross the street because it was too tired."
KINDS = {
    "house-gpt": TEXT,  # pre-norm, learned positions
    "minilm": TEXT,  # an encoder, post-norm, with word pieces
    "induction": "q f m b q f m b q",  # attention only
    "translate-en-fr": "the black cat sees the dog",  # two stacks
    "all-stages": TEXT,  # cap, bias, window and sink
    "llama": OF_HUB_MODELS,  # RMS norms, rotary, shared keys, no bias; of random weights
}


def name_of(kind: str) -> str:
    """By what name a page opens the model of a kind."""
    return str(saved(kind)) if kind == "llama" else kind
