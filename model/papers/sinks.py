"""Claims about the first token and about the largest numbers of the stream."""

from collections.abc import Iterator, Sequence

import numpy as np

from model.analysis.heads.sinks import TokenAsKey, token_as_key
from model.analysis.heads.statistics import families
from model.analysis.stream.stream import LargeNumber, largest_numbers, layer_states
from model.nn.intervention import Intervention
from model.nn.places import layer_label
from model.papers.claims import PaperQuantity, brief
from model.papers.subject import Measured, Subject
from model.papers.texts import SEEDS, NotAskedError, Passage, passages
from model.system.words import Words
from model.trace.arrays import Wide
from model.trace.trace import Trace

say = Words("papers.sinks")

RESTS = 0.3  # of the weight on one token: the bound of Gu et al.
FEW_TOKENS = 24  # of a text whose largest numbers are asked for
LARGE = 100.0  # times the median: less is no large number


def first_token(subject: Subject) -> Measured:
    """The mean weight that later tokens give to the first one, over all heads and texts. Control: to the
    second token."""
    first, second = subject.once(_as_keys)
    weights = _joined(first, "weight")
    return Measured(
        PaperQuantity(float(np.nanmean(weights)), say("weight_row_lies")),
        PaperQuantity(float(np.nanmean(_joined(second, "weight"))), say("lies_second_token")),
        say("mean_over_texts", resting=_resting(weights), rests=RESTS),
        SEEDS,
    )


def _resting(weights: Wide) -> float:
    """The share of heads with more than RESTS of their weight on a token, of those that may look at it."""
    return float((weights[~np.isnan(weights)] > RESTS).mean())


def sink_values(subject: Subject) -> Measured:
    """In the heads that give the first token more than RESTS: the length of its value beside the mean of the
    other tokens', in the mean over heads and texts. Control: the same of the second token."""
    first, second = subject.once(_as_keys)
    weights = _joined(first, "weight")
    rests = weights > RESTS
    if not rests.any():
        raise NotAskedError(
            f"No head of this model gives the first token more than {RESTS:g} of its weight."
        )
    figure, control = (
        float(np.nanmean(_joined(one, "value_ratio")[rests])) for one in (first, second)
    )
    return Measured(
        PaperQuantity(figure, say("times_length_other")),
        PaperQuantity(control, say("times_second_token")),
        say("heads", resting=_resting(weights)),
        SEEDS,
    )


def _as_keys(subject: Subject) -> tuple[list[TokenAsKey], list[TokenAsKey]]:
    """The first and the second token as keys of self-attention, text by text."""
    first, second = [], []
    for passage in passages(subject.model):
        trace = subject.trace(passage)
        for family in families(trace):
            if not family.cross and len(family.keys(trace)) > 2:
                first.append(token_as_key(subject.model, trace, family, 0))
                second.append(token_as_key(subject.model, trace, family, 1))
    if not first:
        raise NotAskedError("This model has no self-attention over more than two tokens.")
    return first, second


def _joined(keys: Sequence[TokenAsKey], name: str) -> Wide:
    return np.concatenate([np.asarray(getattr(one, name), np.float64) for one in keys])


def massive(subject: Subject) -> Measured:
    """How many times the median of its state the largest number of the stream is, in the state that a layer
    reads where that is most, in the mean over texts. Control: the largest number of the same state at other
    tokens."""
    ratios, others, numbers = [], [], []
    for _, trace, _ in subject.once(_largest):
        number, other = max(_of_each_layer(trace), key=lambda one: one[0].ratio)
        ratios.append(number.ratio)
        others.append(other)
        numbers.append(number)
    number = numbers[int(np.argmax(ratios))]
    return Measured(
        PaperQuantity(float(np.mean(ratios)), say("times_median_state")),
        PaperQuantity(float(np.mean(others)), say("times_largest_number")),
        say(
            "largest_before_token",
            brief=brief(number.value),
            layer_label=layer_label(number.place),
            token=number.token,
            dimension=number.dimension,
        ),
        len(ratios),
    )


def _of_each_layer(trace: Trace) -> Iterator[tuple[LargeNumber, float]]:
    """The largest number of each state that a layer of the last stack reads; and that of its other tokens, in
    medians too."""
    for place, state in layer_states(trace, trace.attention[-1].stack).items():
        sizes = np.abs(state.astype(np.float64))
        token, dimension = (int(at) for at in np.unravel_index(sizes.argmax(), sizes.shape))
        median, others = float(np.median(sizes)), np.delete(sizes, token, 0).max(initial=0.0)
        largest, left = (
            float(size / median) if median else np.inf for size in (sizes.max(), others)
        )
        yield LargeNumber(place, token, dimension, float(state[token, dimension]), largest), left


def massive_at_zero(subject: Subject) -> Measured:
    """How much the loss of a text rises with its largest number at 0, in the first layer that reads it at
    half of its size or more. Control: with another number of the same token at 0."""
    if subject.model.config.shape == "encoder":
        raise NotAskedError("This model predicts no next token, so it has no loss.")
    rises, others = [], []
    for seed, (passage, trace, number) in enumerate(subject.once(_largest)):
        if number.ratio < LARGE:
            continue
        width = trace.residual[trace.find(number.place).stack][0].shape[1]
        other = int(
            np.random.default_rng(seed).choice(np.delete(np.arange(width), number.dimension))
        )
        before = float(subject.losses([passage]).mean())

        def loss(dimension: int, number: LargeNumber = number, passage: Passage = passage) -> float:
            gone = frozenset({(number.place, number.token, dimension, 0.0)})
            return float(subject.losses([passage], Intervention(stream=gone)).mean())

        rises.append(loss(number.dimension) - before)
        others.append(loss(other) - before)
    if len(rises) < SEEDS // 2:
        raise NotAskedError(
            f"The stream of this model has no number of {LARGE:g} times the median."
        )
    return Measured(
        PaperQuantity(float(np.mean(rises)), say("nats_loss_rises")),
        PaperQuantity(float(np.mean(others)), say("nats_another_number")),
        "",
        len(rises),
        len(rises),
    )


def _largest(subject: Subject) -> list[tuple[Passage, Trace, LargeNumber]]:
    """Of each text the number of the last stack's stream that `largest_numbers` finds at the most medians."""
    largest = []
    for passage in passages(subject.model, FEW_TOKENS):
        trace = subject.trace(passage)
        stack = trace.attention[-1].stack
        numbers = [one for one in largest_numbers(trace, 50) if one.place.startswith(stack)]
        if numbers:
            largest.append((passage, trace, max(numbers, key=lambda one: one.ratio)))
    if not largest:
        raise NotAskedError("The stream of this model is not known.")
    return largest
