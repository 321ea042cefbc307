"""Traces whose weights are given: heads that do what a test says, without a model."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from model.nn.intervention import Intervention
from model.nn.places import Place
from model.trace.arrays import Array
from model.trace.records import Attention, Token
from model.trace.trace import Trace

Kind = Literal["self", "causal"]


def made_trace(
    weights: Sequence[Array], words: str, *, kind: Kind = "causal", target: str = ""
) -> Trace:
    """One sub-layer with these weights, a head each. `kind` "self" is an encoder's; with a target
    the heads are a translator's, whose decoder reads those words."""
    numbers: dict[str, int] = {}

    def tokens(text: str) -> tuple[Token, ...]:
        return tuple(Token(numbers.setdefault(one, len(numbers)), one) for one in text.split())

    stack: Literal["encoder", "decoder"] = "encoder" if kind == "self" else "decoder"
    heads, length = len(weights), len(weights[0])
    vector = np.zeros((heads, length, 1), dtype=np.float32)
    attention = Attention(
        place=Place(stack, 0, kind),
        heads=heads,
        scale=1.0,
        mask_value=float("-inf"),
        output=vector,
        ablated=(),
        vectors=(vector, vector, vector),
        own_mask=None,
        look_ahead=kind == "causal",
        steps={"weights": np.stack(weights).astype(np.float32)},
    )
    states = {stack: (vector[0],)}
    return Trace(
        model="made",
        text=words,
        intervention=Intervention(),
        tokens=tokens(words),
        target_tokens=tokens(target),
        attention=(attention,),
        norms=(),
        residual=states | ({"encoder": (vector[0],)} if target else {}),
        summands={},
        angles=None,
        feed_forward=(),
        prediction=None,
    )
