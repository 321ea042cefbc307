"""What must hold for a hub model before it is shown, checked on one text at load."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from model.analysis.stream.stream import (
    contribution_check,
    contributions,
    embedding_norm,
    weight_and_bias,
)
from model.arithmetic.sizes import parameter_parts
from model.nn.config import Part, Reasons
from model.nn.intervention import Intervention
from model.nn.places import Place
from model.run.model import Model
from model.trace.arrays import Array
from model.trace.check import largest
from model.trace.collect import array_of
from model.trace.trace import Trace
from model.trace.unproven import WORDS, UnprovenError

WEIGHTS = 1e-4  # largest difference of an attention weight
SHARE = 1e-3  # largest difference of other numbers, as a share of the largest of them
RECORDS = 1e-2  # largest difference of a record from its own formula


@dataclass(frozen=True, eq=False)
class Reference:
    """The result of the library's eager attention on a text."""

    source: Tensor  # (1, S) ids
    target: Tensor | None  # (1, T) ids of the decoder's input in an encoder–decoder
    weights: dict[Place, tuple[Tensor, ...]]  # of any layer -> (1, H, T, S) of each
    result: Tensor  # logits, or an encoder's last state

    @property
    def layers(self) -> int:
        """How many attention layers the library hands out weights of."""
        return sum(map(len, self.weights.values()))


@dataclass(frozen=True)
class Checked:
    """What is not proven and why, and the factor of the logits."""

    unproven: Reasons
    logit_factor: float


def check(model: Model, reference: Reference) -> Checked:
    """Compares our pass with the reference, and its records with each other.

    Raises ValueError, with a sentence, where attention is not proven.
    """
    trace, result = traced(model, reference, Intervention())
    _same_weights(trace, reference)
    if not largest(attention.check() for attention in trace.attention) <= RECORDS:
        raise ValueError("the outputs of its attention are not what its weights and values give")
    unproven: dict[Part, str] = dict(model.unproven)
    found: dict[Part, float | None] = {}
    proofs: tuple[tuple[Part, tuple[Part, ...], Callable[[], float | None]], ...] = (
        ("logits", (), lambda: _near(result, array_of(reference.result), "its logits")),
        ("norms", (), lambda: _normed(trace)),
        ("stream", ("output",), lambda: _add_up(model, trace)),
        ("embedding", ("stream", "norms"), lambda: _starts(trace)),
        ("unembedding", ("stream", "logits"), lambda: _unembeds(model, trace)),
        ("logit_parts", ("norms", "stream", "logits"), lambda: _linear(model, trace)),
        ("positions", (), lambda: _forgets_positions(model, reference)),
        ("sizes", (), lambda: _follows(model)),
    )
    for part, needs, proof in proofs:
        try:
            lacking = next((other for other in needs if other in unproven), None)
            if lacking is not None and part not in unproven:
                raise ValueError(f"that needs {WORDS[lacking]}, and {unproven[lacking]}")
            if part not in unproven:
                found[part] = proof()
        except UnprovenError as error:
            unproven[part] = f"that needs {WORDS[error.part]}, and {unproven[error.part]}"
        except ValueError as reason:
            unproven[part] = str(reason)
    return Checked(unproven, found.get("logit_parts") or 1.0)


def traced(model: Model, reference: Reference, intervention: Intervention) -> tuple[Trace, Array]:
    """A pass over the reference's ids, and its result."""
    tokens = model.tokenizer.named(reference.source[0].tolist())
    given = [] if reference.target is None else reference.target[0].tolist()
    return model.passed(tokens, model.tokenizer.named(given), intervention, record="full")


def _same_weights(trace: Trace, reference: Reference) -> None:
    expected = {
        replace(place, layer=layer).name: array_of(weights)
        for place, layers in reference.weights.items()
        for layer, weights in enumerate(layers)
    }
    found = {attention.name: attention for attention in trace.attention}
    if len(found) > len(expected):
        raise ValueError(
            f"its {len(expected)} attention layers attend {len(found)} times: some do so more than once, "
            "as in differential attention"
        )
    if expected.keys() != found.keys():
        raise ValueError(
            f"{len(expected.keys() & found.keys())} of its {len(expected)} attention layers go through "
            "the library's interface"
        )
    for name, weights in expected.items():
        cells = found[name].heads, found[name].query.shape[1], found[name].key.shape[1]
        if weights.shape != cells:
            raise ValueError(
                f"{name} has {cells[0]} heads that weigh {cells[2]} keys for {cells[1]} queries, but the "
                f"library hands out weights for {' × '.join(map(str, weights.shape))}"
            )
        for head in range(found[name].heads):
            apart = float(np.abs(found[name].weights(head) - weights[head]).max())
            if not apart <= WEIGHTS:
                raise ValueError(
                    f"the weights of {name}, head {head}, differ from the library's own by {apart:.1g}"
                )


def _near(ours: Array, theirs: Array, what: str) -> None:
    if ours.shape != theirs.shape:
        raise ValueError(f"{what} would not have the sizes of the library's own")
    size = max(float(np.abs(theirs).max()), 1.0)
    apart = float(np.abs(ours - theirs).max())
    if not apart <= SHARE * size:
        raise ValueError(f"{what} would differ from the library's own by {apart:.1g}")


def _normed(trace: Trace) -> None:
    if not largest(norm.check() for norm in trace.norms) <= RECORDS:
        raise ValueError("its norms do not give what their formulas give")


def _add_up(model: Model, trace: Trace) -> None:
    """State + output of the sub-layer = next state."""
    for stack in trace.stacks:
        given = contributions(trace, stack, model.config.norm_place)
        size = max(float(np.abs(part.added).max()) for part in given)
        apart = contribution_check(model, trace, given)
        if not apart <= SHARE * max(size, 1.0):
            raise ValueError(
                f"what its sub-layers write does not add up to the stream of its {stack}, by {apart:.1g}"
            )


def _starts(trace: Trace) -> None:
    """The first state is the sum of the embeddings, or a norm of that sum."""
    for stack in trace.stacks:
        norm = embedding_norm(trace, stack)
        total = np.asarray(sum(trace.summands[stack].values()))
        started = total if norm is None else norm.output
        if started.shape[-1] != trace.residual[stack][0].shape[-1]:
            raise ValueError(f"a map stands between the embeddings and the layers of its {stack}")
        if norm is not None:
            _near(total, norm.input, f"the sum of the embeddings of its {stack}")
        _near(
            np.broadcast_to(started, trace.residual[stack][0].shape),
            trace.residual[stack][0],
            f"the sum of the embeddings of its {stack}",
        )


def _unembeds(model: Model, trace: Trace) -> None:
    if trace.logits is not None:
        try:
            unembedded = model.unembed(trace.residual["decoder"][-1])
        except (TypeError, AttributeError, RuntimeError) as error:
            raise ValueError(
                "the library's own code for its logits cannot be run without its layers"
            ) from error
        _near(unembedded, trace.logits, "its last state through the output matrix")


def _plain_logits(model: Model, trace: Trace) -> Array:
    """(token, vocabulary): the output matrix times the last state, normed."""
    final = Place("decoder", None, "final").norm
    norms = {norm.name: norm.output for norm in trace.norms}
    weight, bias = weight_and_bias(model.module.output or model.module.embedding.tokens)
    ended = norms.get(final, trace.residual["decoder"][-1])
    if ended.shape[-1] != weight.shape[-1]:
        raise ValueError("a map stands between its last state and the output matrix")
    return np.asarray(ended @ weight.T + bias)


def _linear(model: Model, trace: Trace) -> float:
    """The factor in logits = factor · (output matrix · last state). Raises ValueError where this does not
    hold."""
    if trace.logits is None:
        return 1.0
    plain = _plain_logits(model, trace)
    measured = float((plain * trace.logits).sum() / max(float(np.square(plain).sum()), 1e-12))
    for factor in (1.0, measured):
        if np.abs(factor * plain - trace.logits).max() <= SHARE * max(np.abs(plain).max(), 1.0):
            return factor
    raise ValueError(
        "its logits are more than the output matrix times the last state: a cap, for instance, follows"
    )


def _follows(model: Model) -> None:
    """The parameters that follow from the sizes of the config are all that there are."""
    config = model.config
    listed = parameter_parts(config) | model.module.extra_parameters()
    counted = model.parameter_count
    if sum(listed.values()) != counted:
        raise ValueError(f"its {counted:,} parameters do not follow from the sizes of its layers")


def _forgets_positions(model: Model, reference: Reference) -> None:
    """Without positions and masks, a reversed text must give the same states in reverse order.

    A model with another mask, one of chunks for instance, is not checked.
    """
    intervention = Intervention(positions=False, bias=False, mask="none")
    turned = replace(
        reference,
        source=reference.source.flip(1),
        target=None if reference.target is None else reference.target.flip(1),
    )
    forwards, last = traced(model, reference, intervention)
    _, other = traced(model, turned, intervention)
    if any(attention.mask is not None for attention in forwards.attention):
        return
    other = other[::-1]
    if not float(np.abs(last - other).max()) <= SHARE * max(float(np.abs(last).max()), 1.0):
        raise ValueError("positions reach its scores in a way that cannot be switched off")
