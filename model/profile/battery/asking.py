"""Asks all heads of a model all prompts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from model.nn.places import Place
from model.profile.battery.effects import head_effects
from model.profile.battery.kinds import KINDS, LOOKED_FOR, HeadEffect, HeadKind, is_given
from model.profile.battery.prompts import (
    WANTED,
    LabelCells,
    LabelPrompt,
    random_prompts,
    sentence_prompts,
)
from model.profile.measures import weights_of
from model.system.memory import enough_memory
from model.system.threads import one_thread
from model.system.words import Words
from model.trace.arrays import Wide
from model.trace.collect import tensors_of
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

say = Words("profile.battery_asking")

BARRED = say("may_not_look_keys")
# The columns of the labels, and what a row has: by the weights, and by what becomes of the answer.
LOOKS: Mapping[str, type] = {
    "layer": str,
    "head": int,
    "label": str,
    "score": float,  # mean weight of a row on the wanted cells; NaN where the head cannot be asked
    "control": float,  # the largest mean of the controls; NaN without one
    "prompts": int,
    "given": bool,
    "against": str,  # which control that is
    "reason": str,  # why the head cannot be asked; "" where it was
}
COLUMNS: Mapping[str, type] = {
    **LOOKS,
    "effect": float,  # direct, on the logit of the answer above what it is compared with
    "effect_spread": float,  # its standard error over the prompts
    "effect_control": float,  # the same effect on another prompt's answer
    "left_out": float,  # what the pass without the head changes
    "left_out_spread": float,
    "left_out_control": float,
    "measure": str,  # what that is of: "logit", of the answer; "moved", a share of the final vectors' length
    "does": str,  # "raises", "lowers" or "moves" the answer, "nothing", or "" where that was not asked
    "effect_reason": str,  # why one of these is NaN
}


@one_thread()  # a sum over several threads depends on their number
def labels(model: "Model") -> pd.DataFrame:
    """One row for each head and label, as COLUMNS: which labels a head gets, and the evidence. The same
    model gives the same table. Raises OutOfMemoryError."""
    looks = _looks(model)
    return both_verdicts(looks, head_effects(model, looks))


def both_verdicts(
    looks: pd.DataFrame, effects: Mapping[tuple[str, int, str], HeadEffect]
) -> pd.DataFrame:
    """COLUMNS, head by head and label by label. looks: LOOKS of the labels that have cells of their own.
    effects: of those by layer, head and label; the others are NaN."""
    known = {(row["layer"], row["head"], row["label"]): row for row in looks.to_dict("records")}
    rows: list[dict[str, object]] = []
    for layer, head in dict.fromkeys(key[:2] for key in known):
        for kind in KINDS:
            key = layer, head, kind.like or kind.name
            row, found = known[key], effects.get(key, HeadEffect())
            given = kind.is_given(row["score"], row["control"], found.does)
            verdict = {"measure": found.measure, "does": found.does, "effect_reason": found.reason}
            looked = {name: row[name] for name in LOOKS} | {"label": kind.name, "given": given}
            rows.append({**looked, **found.numbers, **verdict})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict(COLUMNS))


def _looks(model: "Model") -> pd.DataFrame:
    """LOOKS of each label that has cells of its own."""
    prompts = random_prompts(model) + sentence_prompts(model)
    layers = model.module.attentions()
    tallies = {layer.place.name: Tally(layer.heads) for layer in layers}
    refused = {layer.place.name: _refusals(layer.place, model) for layer in layers}
    for prompt in prompts.made:
        for attention in _passed(model, prompt).attention:
            asked = [
                one for one in prompt.asked(attention) if not refused[attention.name][one.label]
            ]
            if asked:
                weights, allowed = weights_of(tensors_of(attention))
                tallies[attention.name].add(asked, weights.cpu(), allowed.cpu())
    rows: list[tuple[object, ...]] = []
    for layer in layers:
        reasons = {
            label: reason or prompts.refused.get((layer.place.stack, label), BARRED)
            for label, reason in refused[layer.place.name].items()
        }
        rows += tallies[layer.place.name].rows(layer.place.name, reasons)
    return pd.DataFrame(rows, columns=list(LOOKS)).astype(dict(LOOKS))


def _refusals(place: Place, model: "Model") -> dict[str, str]:
    """Why heads of a sub-layer cannot be asked for each label; "" where they can."""
    continued = model.config.shape == "decoder"
    return {kind.name: kind.refusal(place.kind, continued=continued) for kind in LOOKED_FOR}


def _passed(model: "Model", prompt: LabelPrompt) -> Trace:
    target = prompt.target.tokens if prompt.target else ()
    with enough_memory(f"{len(prompt.source.tokens):,} tokens in {model.name}"):
        trace, _ = model.passed(prompt.source.tokens, target)
    return trace


@dataclass
class Tally:
    """The weights of one sub-layer's H heads on all cells so far, by label and role."""

    heads: int
    sums: dict[tuple[str, str], Tensor] = field(default_factory=dict)  # (H,)
    counts: dict[tuple[str, str], Tensor] = field(default_factory=dict)  # (H,): of rows
    prompts: dict[str, Tensor] = field(default_factory=dict)  # (H,)

    def add(self, asked: Iterable[LabelCells], weights: Tensor, allowed: Tensor) -> None:
        """Counts a row where a head may look at a cell, and at another key beside it: without a choice its
        weight says nothing.

        Args:
            asked: of one prompt, with its cells, (Q, K), by label and role.
            weights: (H, Q, K).
            allowed: (H or 1, Q, K): where a head may look.
        """
        for label, role, mask in asked:
            cells = torch.from_numpy(mask)
            rows = (allowed & cells).any(-1) & (allowed & ~cells).any(-1)  # (H or 1, Q)
            sums = (weights.double() * cells).sum(-1).mul(rows).sum(-1)
            counts = rows.sum(-1).expand(self.heads)
            none = torch.zeros(self.heads)
            self.sums[label, role] = self.sums.get((label, role), none) + sums
            self.counts[label, role] = self.counts.get((label, role), none) + counts
            if role == WANTED:
                self.prompts[label] = self.prompts.get(label, none) + (counts > 0)

    def rows(self, layer: str, reasons: Mapping[str, str]) -> Iterator[tuple[object, ...]]:
        """LOOKS, head by head and label by label."""
        means = {one: self._means(one) for one in self.sums}
        for head in range(self.heads):
            for kind in LOOKED_FOR:
                found = {
                    role: of[head] for (label, role), of in means.items() if label == kind.name
                }
                yield layer, head, *self._row(kind, head, found, reasons[kind.name])

    def _means(self, one: tuple[str, str]) -> Wide:
        with np.errstate(invalid="ignore"):
            return np.asarray((self.sums[one] / self.counts[one]).numpy(), np.float64)

    def _row(
        self, kind: HeadKind, head: int, means: dict[str, float], reason: str
    ) -> tuple[object, ...]:
        prompts = int(self.prompts[kind.name][head]) if kind.name in self.prompts else 0
        if not prompts:
            return kind.name, np.nan, np.nan, 0, False, "", reason
        score = float(means.pop(WANTED))
        known = {role: float(mean) for role, mean in means.items() if not np.isnan(mean)}
        against = max(known, key=lambda role: known[role], default="")
        control = known.get(against, np.nan)
        if np.isnan(score):
            return kind.name, score, control, 0, False, "", say("weights_not_finite")
        return kind.name, score, control, prompts, is_given(score, control), against, ""
