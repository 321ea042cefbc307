"""Half precision, where the owner asks for it.

Its rounding would hide a mistake, so a model is checked in float32 first. Then the rounding is measured: our
pass in half precision may lie no farther from the library's weights and logits in float32 than a few times
what the library's own pass in half precision does.
"""

from dataclasses import replace

import numpy as np
import torch

from model.hub.attention import NAME
from model.hub.check import Reference, traced
from model.hub.proving import Candidate
from model.hub.twin import set_attention
from model.nn.intervention import UNCHANGED
from model.run.model import Model
from model.system.settings import Precision
from model.trace.arrays import Array
from model.trace.collect import array_of

TIMES = 3.0  # the fused kernel rounds in other places than the library's steps
RESULT = "result"
KINDS: dict[Precision, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def halve(model: Model, candidate: Candidate, exact: Reference, precision: Precision) -> None:
    """Gives the weights of a hub model half precision, where it is now. exact: as for `check_rounding`, which
    raises ValueError."""
    kept = set(getattr(candidate.body, "_keep_in_fp32_modules", None) or ())
    for name, weight in candidate.body.named_parameters():
        if kept.isdisjoint(name.split(".")):
            weight.data = weight.data.to(KINDS[precision])
    check_rounding(model, candidate, exact)


def check_rounding(model: Model, candidate: Candidate, exact: Reference) -> None:
    """Raises ValueError, with a sentence, where our pass in the model's precision differs from float32 by
    more than rounding does. exact: the library's eager attention in float32."""
    precision = str(model.precision).removeprefix("torch.")
    set_attention(candidate.body, "eager")
    library = _arrays(candidate.eager())
    set_attention(candidate.body, NAME)
    trace, result = traced(model, exact, UNCHANGED)
    ours = {
        one.name: np.stack([one.weights(head) for head in range(one.heads)])
        for one in trace.attention
    } | {RESULT: result}
    for name, expected in _arrays(exact).items():
        own, theirs = (float(np.abs(one[name] - expected).max()) for one in (ours, library))
        if not own <= TIMES * theirs:
            what = "its result" if name == RESULT else f"the weights of {name}"
            raise ValueError(
                f"in {precision} {what} would differ from float32 by {own:.1g}, and the library's own in "
                f"{precision} differ by {theirs:.1g}"
            )


def _arrays(reference: Reference) -> dict[str, Array]:
    """Each layer's weights (head, query, key) by its name, and the result (token, …)."""
    weights = {
        replace(place, layer=layer).name: array_of(one)
        for place, layers in reference.weights.items()
        for layer, one in enumerate(layers)
    }
    return weights | {RESULT: array_of(reference.result)}
