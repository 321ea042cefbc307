"""What must hold for a hub model before it is shown, checked on one text at load."""

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from model.analysis.stream.stream import contribution_check, contributions
from model.nn.config import Stack
from model.nn.intervention import Intervention
from model.nn.places import Place
from model.run.model import Model
from model.trace.arrays import Array
from model.trace.trace import Trace

WEIGHTS = 1e-4  # largest difference of an attention weight
SHARE = 1e-3  # largest difference of other numbers, as a share of the largest of them


@dataclass(frozen=True, eq=False)
class Reference:
    """The result of the library's eager attention on a text."""

    source: Tensor  # (1, S) ids
    target: Tensor | None  # (1, T) ids of the decoder's input in an encoder–decoder
    weights: dict[Place, tuple[Tensor, ...]]  # of any layer -> (1, H, T, S) of each
    result: Tensor  # logits, or an encoder's last state


def check(model: Model, reference: Reference) -> None:
    """Compares our pass with the reference, and its records with each other.

    Raises ValueError, with a sentence, for the first difference.
    """
    trace, result = traced(model, reference, Intervention())
    _same_weights(trace, reference)
    _near(result, reference.result.numpy(), "its logits")
    if trace.check() > 1e-2:
        raise ValueError("its norms and outputs are not what their formulas give")
    for stack in trace.residual:
        _adds_up(model, trace, stack)
    if trace.logits is not None:
        _near(model.unembed(trace.residual["decoder"][-1]), trace.logits,
              "its last state through the output matrix")  # fmt: skip
    _forgets_positions(model, reference)


def traced(model: Model, reference: Reference, intervention: Intervention) -> tuple[Trace, Array]:
    """A pass over the reference's ids, and its result."""
    tokens = model.tokenizer.named(reference.source[0].tolist())
    given = [] if reference.target is None else reference.target[0].tolist()
    return model.passed(tokens, model.tokenizer.named(given), intervention, record="full")


def _same_weights(trace: Trace, reference: Reference) -> None:
    expected = {
        replace(place, layer=layer).name: weights[0].numpy()
        for place, layers in reference.weights.items()
        for layer, weights in enumerate(layers)
    }
    found = {attention.name: attention for attention in trace.attention}
    if expected.keys() != found.keys():
        raise ValueError(
            f"{len(found)} of its {len(expected)} attention layers go through the library's "
            "interface"
        )
    for name, weights in expected.items():
        for head in range(found[name].heads):
            apart = float(np.abs(found[name].weights(head) - weights[head]).max())
            if not apart <= WEIGHTS:
                raise ValueError(
                    f"the weights of {name}, head {head}, differ from the library's own by {apart:.1g}"
                )


def _near(ours: Array, theirs: Array, what: str) -> None:
    size = max(float(np.abs(theirs).max()), 1.0)
    apart = float(np.abs(ours - theirs).max())
    if not apart <= SHARE * size:
        raise ValueError(f"{what} would differ from the library's own by {apart:.1g}")


def _adds_up(model: Model, trace: Trace, stack: Stack) -> None:
    """State + output of the sub-layer = next state."""
    given = contributions(trace, stack, model.config.norm_place)
    size = max(float(np.abs(part.added).max()) for part in given)
    apart = contribution_check(model, trace, given)
    if not apart <= SHARE * max(size, 1.0):
        raise ValueError(
            f"what its sub-layers write does not add up to the stream of its {stack} ({apart:.1g})"
        )


def _forgets_positions(model: Model, reference: Reference) -> None:
    """Without positions and masks, a reversed text must give the same states in reverse order.

    A model with another mask, such as a window, is not checked.
    """
    intervention = Intervention(positions=False, mask="none")
    turned = replace(
        reference,
        source=reference.source.flip(1),
        target=None if reference.target is None else reference.target.flip(1),
    )
    forwards, _ = traced(model, reference, intervention)
    backwards, _ = traced(model, turned, intervention)
    if any(attention.mask is not None for attention in forwards.attention):
        return
    for stack, states in forwards.residual.items():
        last, other = states[-1], backwards.residual[stack][-1][::-1]
        if not float(np.abs(last - other).max()) <= SHARE * max(float(np.abs(last).max()), 1.0):
            raise ValueError(
                f"positions reach its {stack} in a way that cannot be switched off, such as a bias "
                "on the scores"
            )
