"""What is remarkable in one text: tokens, heads and numbers, scanned by the methods of this package, as at
most ten findings. What a head does is told by what is lost without it, beside where it looks."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np
import torch
import torch.nn.functional as F

from model.analysis.attribution.patching import Turn
from model.analysis.attribution.score_parts import edge_values
from model.analysis.heads.contributions import (
    Ablations,
    Measure,
    ablate_each,
    parts_of_logit,
)
from model.analysis.heads.ranking import STATISTICS, scores
from model.analysis.heads.statistics import families, on_first
from model.analysis.run_comparison import losses, predicted
from model.analysis.stream.stream import largest_numbers, layer_states
from model.nn.intervention import Intervention
from model.nn.places import Head, head_label, layer_label
from model.run.passes import forward, ids_of
from model.system.border import at_border
from model.system.remote import asked
from model.system.words import Words
from model.trace.arrays import Wide
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

say = Words("analysis.findings")

MOST, OF_A_KIND = 10, 2  # findings in all, and of one kind
MEASURES: tuple[Measure, ...] = ("loss", "moved", "divergence")  # the first that the text allows
StandsOut = tuple[float, tuple[float, ...], int]
LARGE = 10.0  # times the median: a number that is worth a sentence


@dataclass(frozen=True)
class Finding:
    """One remarkable thing of a text.

    kind: "surprise", "needed", "in the way", "looks", "first token", "number", or "edge". value: the number
    that the sentence is about. check: how far a second way to compute it differs. link: the address in the
    app that shows it. stands_out: how far the value lies from the median of its like, in median absolute
    deviations. among: the numbers that it stands out from: of all heads, all tokens, or one token's vector.
    at: its own place among them.

    >>> from model.analysis import scan
    >>> finding = scan(model, trace)[0]
    >>> finding.check < 1e-3, finding.stands_out > 0
    (True, True)
    """

    kind: str
    sentence: str
    value: float
    check: float
    link: str
    stands_out: float
    among: tuple[float, ...] = ()
    at: int = 0


@dataclass(frozen=True)
class Scan:
    """The findings so far. done: passes without one head, of `total`."""

    findings: tuple[Finding, ...]
    done: int
    total: int


@asked
@at_border
def scan(model: "Model", trace: Trace) -> tuple[Finding, ...]:
    """At most ten findings, those that stand out most among their like first, and two of a kind at most. One
    pass for each head. Raises ValueError for a trace of another model, or without its parts.

    >>> from model.analysis import scan
    >>> len(scan(model, trace)) <= 10
    True
    """
    (*_, last) = scanning(model, trace)
    return last.findings


@asked
def scanning(model: "Model", trace: Trace, turn: Turn = nullcontext) -> Iterator[Scan]:
    """The same with progress: nothing is found before the last pass without a head is done. turn: makes a
    context for each batch of passes."""
    effects = None
    for effects in ablate_each(model, trace, (), turn):
        if not effects.complete:
            yield Scan((), effects.done, effects.total)
    if effects is None:
        raise ValueError("This model has no attention to scan.")
    with turn():
        found = _Text(model, trace, effects).findings()
    kept: list[Finding] = []
    for one in sorted(found, key=lambda one: -one.stands_out):
        is_told = any(one.link == other.link for other in kept)  # of a head once
        if not is_told and [other.kind for other in kept].count(one.kind) < OF_A_KIND:
            kept.append(one)
    yield Scan(tuple(kept[:MOST]), effects.total, effects.total)


@dataclass(frozen=True)
class _Text:
    """One text under the eyes of all methods."""

    model: "Model"
    trace: Trace
    effects: Ablations

    def findings(self) -> list[Finding]:
        found = [*self.of_heads(), *self.of_first_token(), *self.of_numbers()]
        if self.trace.prediction is not None:
            found += [*self.of_tokens(), *self.of_edges()]
        return found

    @property
    def measure(self) -> Measure:
        return next(name for name in MEASURES if name in self.effects.measures)

    def link(self, page: str, **more: object) -> str:
        said = {"text": self.trace.text, "model": self.trace.model} | more
        return f"/{page}?{urlencode({name: str(value) for name, value in said.items()})}"

    def token(self, tokens: Sequence[object], at: int) -> str:
        text = str(getattr(tokens[at], "text", ""))
        return f"“{text.strip() or text}”"

    def of_tokens(self) -> Iterator[Finding]:
        """Those that the model expected least."""
        values, tokens = losses(self.trace), predicted(self.trace)
        prediction = self.trace.require_prediction()
        for at in np.argsort(-values)[:OF_A_KIND]:
            if np.exp(-values[at]) > 0.5:
                return
            logits = torch.tensor(prediction.rows(int(at), int(at) + 1), dtype=torch.float64)
            again = F.cross_entropy(logits, torch.tensor([tokens[at].id])).item()
            yield Finding(
                "surprise",
                say(
                    "model_expected_token",
                    tokens=self.token(tokens, int(at)),
                    at=at + 1,
                    exp=np.exp(-values[at]),
                    values=values[at],
                ),
                float(values[at]),
                abs(again - float(values[at])),
                self.link(""),
                *_apart(values, int(at)),
            )

    def of_heads(self) -> Iterator[Finding]:
        """Those that the text needs, those in its way, and those that look at one place: what each does."""
        change = self.effects.change(self.measure)
        heads = self.effects.heads
        order = np.argsort(-change, kind="stable")
        kinds = {"needed": order[:OF_A_KIND]}
        if self.measure == "loss":
            kinds["in the way"] = order[::-1][:OF_A_KIND]
        for kind, places in kinds.items():
            for at in places:
                if kind == "needed" or change[at] < 0:
                    yield self.of_head(
                        kind, heads[at], "", float(change[at]), _apart(change, int(at))
                    )
        for family in families(self.trace):
            known = scores(self.trace, family)
            for statistic in STATISTICS:
                called = known.called(statistic.name)
                if called and statistic.name != "first":
                    head, share = called[0]
                    looks = (
                        f"{head_label(head)} looks like a “{statistic.title}” head ({share:.2f}). "
                    )
                    at = known.heads.index(head)
                    apart = _apart(known.values[statistic.name], at)
                    yield self.of_head(
                        "looks", head, looks, float(change[heads.index(head)]), apart
                    )

    def of_head(
        self, kind: str, head: Head, looks: str, change: float, apart: StandsOut
    ) -> Finding:
        before = float(self.effects.unchanged[self.measure])
        own = self.trace.intervention
        again = self.measured(replace(own, ablated=own.ablated | {head}))
        name = "it" if looks else head_label(head)
        return Finding(
            kind,
            f"{looks}Without {name} {self.moves(before + change)}.",
            change,
            abs(again - (before + change)),
            self.link("head", place=head[0], head=head[1]),
            *apart,
        )

    def moves(self, after: float) -> str:
        """What a change does, in words. after: the measure in the changed run."""
        before = float(self.effects.unchanged[self.measure])
        if self.measure == "loss":
            was, now = f"{before:.3g}", f"{after:.3g}"
            if was == now:
                return say("loss_text_stays", was=was)
            verb = "rises" if after > before else "falls"
            return say("loss_text_nats", verb=verb, was=was, now=now)
        if self.measure == "divergence":
            return say("prediction_moves_nats", after=after)
        return say("final_vectors_move", after=after)

    def measured(self, intervention: Intervention) -> float:
        """The measure in a pass of its own."""
        changed = self.passed(intervention)
        if self.measure == "moved":
            lengths = torch.linalg.vector_norm(self.own, dim=-1)
            return float((torch.linalg.vector_norm(changed - self.own, dim=-1) / lengths).mean())
        if self.measure == "divergence":
            logs, before = changed[-1].log_softmax(-1), self.own[-1].log_softmax(-1)
            return float(F.kl_div(logs, before, reduction="sum", log_target=True))
        following = [token.id for token in predicted(self.trace)]
        return float(F.cross_entropy(changed[: len(following)], torch.tensor(following)))

    @cached_property
    def own(self) -> torch.Tensor:
        """What the pass of the trace gave, as `passed` gives it."""
        return self.passed(self.trace.intervention)

    def passed(self, intervention: Intervention) -> torch.Tensor:
        """(T, V) logits, or (T, d_model) states of an encoder."""
        texts = ids_of(self.model, self.trace)
        return forward(self.model, texts, intervention=intervention).ended[0].double().cpu()

    def of_first_token(self) -> Iterator[Finding]:
        """How many heads rest on the first token."""
        heads = [
            (
                (one.name, head),
                float(on_first(one.weights(head), across=one.kind == "cross")),
            )
            for one in self.trace.attention
            for head in range(one.heads)
            if one.sizes[2] > 1 and (one.sizes[1] > 1 or one.kind == "cross")
        ]
        shares = np.array([share for _, share in heads])
        count = int((shares > 0.5).sum())
        if count:
            (place, head), share = heads[int(shares.argmax())]
            yield Finding(
                "first token",
                say(
                    "heads_give_first",
                    count=count,
                    heads=len(heads),
                    head_label=head_label((place, head)),
                    share=share,
                ),
                float(count),
                self.trace.check(),
                self.link("all_heads", show="First token", place=place, head=head),
                *_apart(shares, int(shares.argmax())),
            )

    def of_numbers(self) -> Iterator[Finding]:
        """The largest numbers of the stream, with what a zero in their place does."""
        if "stream" in self.trace.unproven:
            return
        states = {
            name: state
            for stack in self.trace.residual
            for name, state in layer_states(self.trace, stack).items()
        }
        for number in largest_numbers(self.trace, OF_A_KIND):
            if number.ratio < LARGE:
                return
            cell = number.place, number.token, number.dimension
            own = self.trace.intervention
            others = {one for one in own.stream if one[:3] != cell}
            as_it_is = replace(own, stream=frozenset({*others, (*cell, number.value)}))
            gone = self.measured(replace(own, stream=frozenset({*others, (*cell, 0.0)})))
            yield Finding(
                "number",
                say(
                    "before_token_holds",
                    layer_label=layer_label(number.place),
                    token=number.token,
                    brief=f"{number.value:,.0f}"
                    if abs(number.value) >= 100
                    else f"{number.value:.3g}",
                    dimension=number.dimension,
                    ratio=number.ratio,
                    moves=self.moves(gone),
                ),
                number.value,
                float((self.passed(as_it_is) - self.own).abs().max()),
                self.link("", stream=":".join(map(str, (*cell, 0.0)))),
                number.ratio,
                tuple(np.abs(states[number.place][number.token]).tolist()),
                number.dimension,
            )

    def of_edges(self) -> Iterator[Finding]:
        """The edge that adds most to the likeliest next token, by the head that adds most."""
        unproven = {"logit_parts", "stream", "output", "norms"} & self.trace.unproven.keys()
        if (
            unproven or self.trace.intervention.sets_stream
        ):  # it is then not the sum of what was written
            return
        prediction = self.trace.require_prediction()
        logits = prediction.after(-1)
        token = int(logits.argmax())
        parts = parts_of_logit(self.model, self.trace, prediction.shape[0] - 1, token)
        heads = [part for part in parts if part.kind == "head"]
        effects = np.array([part.effect for part in heads])
        if not len(effects):
            return
        at = int(effects.argmax())
        place, head = heads[at].name, int(heads[at].head or 0)
        edges = edge_values(self.model, self.trace, place, head).logit(token)[-1]
        key = int(edges.argmax())
        attention = self.trace.find(place)
        keys, queries = self.trace.keys_of(attention), self.trace.queries_of(attention)
        (named,) = self.model.target_tokenizer.named([token])
        yield Finding(
            "edge",
            say(
                "reads_adds_logit",
                queries=self.token(queries, len(queries) - 1),
                keys=self.token(keys, key),
                head_label=head_label((place, head)),
                key_edges=edges[key],
                value=self.token([named], 0),
            ),
            float(edges[key]),
            abs(sum(part.effect for part in parts) - float(logits[token])),
            self.link(
                "",
                show="Carries",
                place=place,
                head=head,
                query=len(queries) - 1,
                key=key,
            ),
            *_apart(effects, at),
        )


def _apart(values: Wide, at: int) -> StandsOut:
    """How far one value lies from the median, in median absolute deviations; all of them; its place."""
    away = np.abs(values - np.median(values))
    spread = np.median(away) or away.mean() or 1.0
    return float(away[at] / spread), tuple(values.tolist()), at
