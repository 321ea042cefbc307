"""Claims about attention as an explanation: what changes when weights are shuffled, and which reading of them
names the tokens that matter.

Axes: R rows of a batch, H heads, Q queries, K keys, T tokens of the text, C d_model, D width of a head.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.relevance import (
    left_out_states,
    rank_correlation,
    starting_hooks,
    states_and_without,
    weight_gradients,
)
from model.analysis.attribution.score_parts import edge_values
from model.analysis.heads.labels import allowed_cells
from model.analysis.heads.statistics import head_weights, rolled
from model.nn.intervention import Intervention
from model.nn.patches import HookPoint, Hooks, Where, cache_hooks, for_each_head, zero_hooks
from model.nn.places import Head
from model.papers.claims import PaperQuantity
from model.papers.subject import Measured, Sample, Subject
from model.papers.texts import PROMPTS, SEEDS, NotAskedError, Passage, agreeing, passages
from model.system.words import Words
from model.trace.arrays import Array, Wide
from model.trace.records import Attention
from model.trace.trace import Trace

say = Words("papers.explanations")

TOGETHER = 4  # counts of tokens that are left out in one batch
MOST_LAYERS = 3  # in which values are set to zero, evenly spaced
DRAWN, ORDERS = 4, 3  # heads of a text, and orders by chance of the weights of each
FAR, NEAR = 0.3, 0.05  # Jensen–Shannon divergence in nats (0.69 at most), and change of the output


def shuffled_weights(subject: Subject) -> Measured:
    """The weights of one head in another order, row by row: how far the output moves, in the median over
    texts, heads and orders. Control: the weights of all heads at once, in the median over texts and orders.
    """
    shuffles = subject.once(_shuffles)
    most = "" if subject.model.config.shape == "encoder" else " (1 at most)"
    return Measured(
        PaperQuantity(
            float(np.median(shuffles.moved)),
            say("far_output_moves", most=most),
        ),
        PaperQuantity(float(np.median(shuffles.all_moved)), say("far_moves_heads")),
        _output(subject),
        SEEDS,
        shuffles.draws,
    )


def adversarial_weights(subject: Subject) -> Measured:
    """The share of heads for which one of ORDERS orders of the weights is far from the own one, and moves the
    output by NEAR at most. Control: of the texts, with all heads at once."""
    shuffles = subject.once(_shuffles)
    spared = ((shuffles.moved <= NEAR) & (shuffles.apart >= FAR)).any(-1)
    all_spared = ((shuffles.all_moved <= NEAR) & (shuffles.all_apart >= FAR)).any(-1)
    return Measured(
        PaperQuantity(float(spared.mean()), say("heads_other_weights")),
        PaperQuantity(float(all_spared.mean()), say("texts_heads_get")),
        say("other_weights_nats", far=FAR, output=_output(subject)),
        SEEDS,
        shuffles.draws,
    )


def _output(subject: Subject) -> str:
    if subject.model.config.shape == "encoder":
        return say("output_final_vectors")
    return say("output_prediction_after")


class _Shuffles(NamedTuple):
    """How far outputs move, and how far the weights lie from the own ones."""

    moved: Wide  # (text, head, order)
    apart: Wide  # (text, head, order): Jensen–Shannon, in the mean over rows
    all_moved: Wide  # (text, order)
    all_apart: Wide  # (text, order)

    @property
    def draws(self) -> int:
        """Passes with weights in an order by chance."""
        return self.moved.size + self.all_moved.size


def _shuffles(subject: Subject) -> _Shuffles:
    heads = subject.heads()
    by_text: list[tuple[Wide, Wide, Wide, Wide]] = []
    for seed, passage in enumerate(passages(subject.model)):
        random = np.random.default_rng(seed)
        trace = subject.trace(passage)
        drawn = [heads[at] for at in random.permutation(len(heads))[:DRAWN]]
        single = [{head: _shuffled(trace, head, random)} for head in drawn for _ in range(ORDERS)]
        whole = [{head: _shuffled(trace, head, random) for head in heads} for _ in range(ORDERS)]
        rows = [*single, *whole]
        before = subject.ended([passage])
        after = subject.in_rows(passage, lambda of: weight_hooks(rows[of]), len(rows))  # noqa: B023
        moved = output_moved(subject, before, after)
        apart = np.array(
            [np.mean([_apart(trace, head, of[head]) for head in of]) for of in rows], np.float64
        )
        shape = len(drawn), ORDERS
        count = len(single)
        by_text.append(
            (
                moved[:count].reshape(shape),
                apart[:count].reshape(shape),
                moved[count:],
                apart[count:],
            )
        )
    return _Shuffles(*(np.array(each) for each in zip(*by_text, strict=True)))


def _shuffled(trace: Trace, head: Head, random: np.random.Generator) -> Wide:
    """(Q, K): the weights of one head, each row in another order among the keys that it may look at."""
    attention = trace.find(head[0])
    weights = attention.weights(head[1]).astype(np.float64)
    for row, allowed in zip(weights, allowed_cells(attention, head[1]), strict=True):
        row[allowed] = random.permutation(row[allowed])
    return weights


def _apart(trace: Trace, head: Head, other: Wide) -> float:
    """The Jensen–Shannon divergence of rows of weights, in nats, in the mean over rows."""
    own = trace.find(head[0]).weights(head[1]).astype(np.float64)
    middle = (own + other) / 2

    def divergence(rows: Wide) -> Wide:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(rows > 0, rows * np.log(rows / middle), 0.0).sum(-1)

    return float(((divergence(own) + divergence(other)) / 2).mean())


def weight_hooks(rows: Sequence[Mapping[Head, Wide]]) -> Hooks:
    """Puts other weights (Q, K) into some heads of each row of a batch: their outputs become these weights
    times the values of the pass."""
    values: dict[HookPoint, Tensor] = {}

    def weighed(name: str, x: Tensor) -> Tensor:
        value, changed = for_each_head(values.pop(("value", name)), x.shape[1]), x.clone()
        for number, row in enumerate(rows):
            for (place, head), weights in row.items():
                if place == name:
                    changed[number, head] = torch.as_tensor(weights).to(x) @ value[number, head]
        return changed

    names = {name for row in rows for name, _ in row}
    caching = cache_hooks(values, [("value", name) for name in names])
    return {**caching, **{("output", name): partial(weighed, name) for name in names}}


def output_moved(subject: Subject, before: Tensor, after: Tensor) -> Wide:
    """(R,): how far the output lies from that of the unchanged pass, one row. Of a model that predicts: the
    total variation distance of the prediction after the last token. Of an encoder: how far the final vectors
    moved, as a share of their length, in the mean."""
    if subject.model.config.shape == "encoder":
        lengths = torch.linalg.vector_norm(before.double(), dim=-1)
        shares = torch.linalg.vector_norm((after - before).double(), dim=-1) / lengths
        return np.asarray(shares.mean(-1).cpu().numpy())
    chances, own = (one[:, -1].double().softmax(-1) for one in (after, before))
    return np.asarray(((chances - own).abs().sum(-1) / 2).cpu().numpy())


# Which tokens matter: told by an order of the tokens, and found out by leaving them out.


@dataclass(frozen=True, eq=False)
class Case:
    """A text, what its tokens weigh by some reading of attention, and what leaving them out does."""

    subject: Subject
    passage: Passage
    trace: Trace

    @property
    def own_last(self) -> bool:
        """Whether the text ends with the token that predicts, which is never left out."""
        return self.subject.model.config.shape == "decoder"

    @property
    def answer(self) -> int:
        """The likeliest next token."""
        return int(self.trace.require_prediction().after(-1).argmax())

    @property
    def tokens(self) -> int:
        """Tokens that may be left out, from the first on."""
        return len(self.trace.tokens) - self.own_last

    def readers(self) -> list[Attention]:
        """The sub-layers that bring the text to where the output is read: of two stacks cross-attention."""
        crossing = [one for one in self.trace.attention if one.kind == "cross"]
        return crossing or list(self.trace.attention)

    def over_heads(self, of_head: Callable[[Attention, int], Array | Wide]) -> Wide:
        """(T,): the sum over all heads that read the text of a (Q, K) array: of the last query, or of an
        encoder over all queries."""
        total = np.zeros(len(self.trace.tokens))
        for attention in self.readers():
            for head in range(attention.heads):
                rows = of_head(attention, head).astype(np.float64)
                total += rows.mean(0) if self._all_queries else rows[-1]
        return total[: self.tokens]

    @property
    def _all_queries(self) -> bool:
        return self.subject.model.config.shape == "encoder"

    def weights(self) -> Wide:
        """(T,): the weight on each token."""
        return self.over_heads(lambda attention, head: attention.weights(head))

    def norms(self) -> Wide:
        """(T,): the lengths of weight · value · W_O (Kobayashi et al. 2020)."""
        return self.over_heads(
            lambda attention, head: (
                edge_values(self.subject.model, self.trace, attention.name, head).norms
            )
        )

    def last_layer(self) -> Wide:
        """(T,): the mean weights of the last layer."""
        mean: Wide = np.array(list(head_weights(self.readers()[-1:])), np.float64).mean(0)
        return (mean.mean(0) if self._all_queries else mean[-1])[: self.tokens]

    def rollout(self) -> Wide:
        """(T,): Abnar and Zuidema 2020."""
        rows = rolled(self.trace.attention).astype(np.float64)
        return (rows.mean(0) if self._all_queries else rows[-1])[: self.tokens]

    @cached_property
    def gradients(self) -> dict[str, Wide]:
        """(H, Q, K) by sub-layer: the gradient of the answer's logit for each weight."""
        with self.subject.turn():
            return weight_gradients(self.subject.model, self.trace, self.answer)

    def weights_times_gradients(self) -> Wide:
        """(T,): the same weights times the gradient of the answer's logit for each."""
        return self.over_heads(
            lambda attention, head: self.gradients[attention.name][head] * attention.weights(head)
        )

    def relevance(self) -> Wide:
        """(T,): the relevance of each token for the answer's logit: R ← R + mean over heads of
        max(0, gradient · weight) · R, layer by layer (Chefer et al. 2021, “Generic Attention-model
        Explainability”)."""
        gradients = self.gradients
        relevance = np.eye(len(self.trace.tokens))
        for attention in self.trace.attention:
            weights = np.array(list(head_weights([attention])), np.float64)  # (H, Q, K)
            positive = np.maximum(gradients[attention.name] * weights, 0).mean(0)
            relevance = relevance + positive @ relevance
        return relevance[-1][: self.tokens]

    def by_chance(self) -> Wide:
        """(T,): an order by chance, another one for each text."""
        seed = sum(token.id for token in self.trace.tokens)
        return np.random.default_rng(seed).random(self.tokens)

    def left_out(self, sets: Sequence[Sequence[int]]) -> Tensor:
        """(R, 1 or T, …): what the pass ends with where some tokens have the mean vector of the vocabulary,
        one set in each row."""
        model, trace = self.subject.model, self.trace
        states = left_out_states(*states_and_without(model, trace), sets)
        ended = self.subject.in_rows(
            self.passage, lambda rows: starting_hooks(trace, states[rows]), len(sets)
        )
        return ended if self._all_queries else ended[:, -1:]

    @cached_property
    def effects(self) -> Wide:
        """(T,): how far the output moves without each token."""
        changed = self.left_out([[at] for at in range(self.tokens)])
        before = self.left_out([[]])
        return output_moved(self.subject, before, changed)

    def read_until(self, order: Wide) -> float:
        """The share of tokens whose weights in the last row are removed, those with the largest numbers
        first, until another token becomes the likeliest; 1 where none does. The others of the row are
        renormalised, in all heads that read the text (Serrano and Smith 2019: of a classifier's one row)."""
        ranked = np.argsort(-order, kind="stable").tolist()
        last = self.readers()[0].sizes[1] - 1
        only = frozenset(one.name for one in self.readers())
        for count in range(1, len(ranked) + self.own_last):  # one weight at least is left
            removed = frozenset((last, key) for key in ranked[:count])
            change = Intervention(blocked=removed, only=only)
            ended = self.subject.ended([self.passage], intervention=change)
            if int(ended[0, -1].argmax()) != self.answer:
                return count / len(ranked)
        return 1.0

    def kept_until(self, order: Wide) -> float:
        """The share of tokens that are left out, those with the largest numbers first, until another token
        becomes the likeliest; 1 where none does."""
        ranked = np.argsort(-order, kind="stable")
        for start in range(1, len(ranked) + 1, TOGETHER):
            counts = range(start, min(start + TOGETHER, len(ranked) + 1))
            ended = self.left_out([ranked[:count].tolist() for count in counts])[:, -1]
            flipped = (ended.argmax(-1) != self.answer).tolist()
            if any(flipped):
                return (start + flipped.index(True)) / len(ranked)
        return 1.0


def _cases(subject: Subject) -> list[Case]:
    return [Case(subject, one, subject.trace(one)) for one in passages(subject.model)]


def _require_answers(subject: Subject) -> None:
    if subject.model.config.shape == "encoder":
        raise NotAskedError("This model predicts no token that could become another one.")


def _require_one_stack(subject: Subject) -> None:
    if subject.model.config.shape == "encoder-decoder":
        raise NotAskedError("The method is one for a single stack of self-attention.")


def erasure(subject: Subject) -> Measured:
    """Weights of the last row are removed, those with the largest weight times gradient first, and the
    others renormalised: after which share of the tokens is another one the likeliest? Control: those with the
    largest weight first."""
    _require_answers(subject)
    return _flips(
        subject,
        Case.read_until,
        (Case.weights_times_gradients, Case.weights),
        say("tokens_read_more"),
        say("weight_alone"),
    )


def relevance_propagation(subject: Subject) -> Measured:
    """Tokens are left out, those with the largest relevance (Chefer et al. 2021) first: after which share of
    them is another token the likeliest? Control: those with the largest weight in the last layer first."""
    _require_answers(subject)
    _require_one_stack(subject)
    return _flips(
        subject,
        Case.kept_until,
        (Case.relevance, Case.last_layer),
        say("tokens_left_out"),
        say("weights_last_layer"),
    )


def _flips(
    subject: Subject,
    until: Callable[[Case, Wide], float],
    orders: tuple[Callable[[Case], Wide], Callable[[Case], Wide]],
    *units: str,
) -> Measured:
    """orders: of the figure and of the control. units: of both."""
    cases = subject.once(_cases)
    shares, controls, chance = (
        np.array([until(case, order(case)) for case in cases])
        for order in (*orders, Case.by_chance)
    )
    figure, control = map(Sample, (shares, controls), units)
    note = say("order_chance", mean_chance=chance.mean())
    return Measured(figure, control, note, len(cases), len(cases))


def value_norms(subject: Subject) -> Measured:
    """Rank correlation of what each token carries, |weight · value · W_O| summed over all heads, with what
    leaving it out does. Control: of its weights."""
    subject.model.require("output")
    return _correlations(subject, Case.norms, Case.weights, "of the lengths", "of the weights")


def rollout(subject: Subject) -> Measured:
    """Rank correlation of rollout with what leaving out each token does. Control: of the weights of the last
    layer."""
    _require_one_stack(subject)
    return _correlations(
        subject, Case.rollout, Case.last_layer, "of rollout", say("last_layer_weights")
    )


def _correlations(
    subject: Subject,
    order: Callable[[Case], Wide],
    against: Callable[[Case], Wide],
    name: str,
    other: str,
) -> Measured:
    pairs: list[tuple[float, float]] = []
    for case in subject.once(_cases):
        both = [rank_correlation(numbers(case), case.effects) for numbers in (order, against)]
        if both[0] is not None and both[1] is not None:
            pairs.append((both[0], both[1]))
    if len(pairs) < SEEDS // 2:
        raise NotAskedError("The texts are too short for ranks in this model.")
    own, theirs = np.array(pairs).T
    return Measured(
        Sample(own, say("rank_correlation_effect", name=name)),
        Sample(theirs, f"rank correlation {other}"),
        prompts=len(pairs),
    )


def value_zeroing(subject: Subject) -> Measured:
    """A verb, its subject and another noun: how much of the reading of both lies on the subject, by how far a
    layer's output moves with the value of a token at zero, added up over MOST_LAYERS layers at most. Control:
    by the weights of the same layers."""
    sentences = agreeing(subject.model)[: PROMPTS // 2]
    shares = []
    for one in sentences:
        passage, row = Passage(one.tokens), one.places["expects"]
        trace = subject.trace(passage)
        count = len(trace.attention)
        layers = sorted({round(at) for at in np.linspace(0, count - 1, min(count, MOST_LAYERS))})
        nouns = one.places["subject"], one.places["other"]
        zeroed, weights = np.zeros(2), np.zeros(2)
        for layer in layers:
            moved = output_without_values(subject, passage, layer, nouns)[:, row]
            zeroed += moved
            mean: Wide = np.array(list(head_weights([trace.attention[layer]])), np.float64).mean(0)
            weights += mean[row, list(nouns)]
        shares.append((zeroed[0] / zeroed.sum(), weights[0] / weights.sum()))
    own, theirs = np.array(shares).T
    return Measured(
        Sample(own, say("reading_both_nouns")),
        Sample(theirs, "by the weights"),
        prompts=len(sentences),
    )


def output_without_values(
    subject: Subject, passage: Passage, layer: int, tokens: Sequence[int]
) -> Wide:
    """(R, T): the cosine distance of each token's output of a layer from its own, with the value of one
    token at zero in all heads of the layer (Mohebbi et al. 2023).

    Args:
        layer: its number, from 0.
        tokens: positions; one for each row.
    """
    model = subject.model
    name = model.attention_names[layer]
    stack = model.stacks()[0]

    zeros: list[dict[HookPoint, list[Where]]] = [{}]  # row 0 is the unchanged pass
    zeros += [{("value", name): [(None, token)]} for token in tokens]
    hooks = zero_hooks(zeros)
    _, recorder = subject.passed([passage], hooks, rows=len(zeros), level="attention")
    states = recorder.streams[stack]
    each = (len(states) - 1) // len(model.attention_names)  # states that a layer adds
    after = states[(layer + 1) * each].double()
    apart = 1 - torch.cosine_similarity(after[1:], after[:1].expand_as(after[1:]), dim=-1)
    return np.asarray(apart.cpu().numpy())
