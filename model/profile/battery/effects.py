"""What each head does to the answers of its prompts: directly, and by the passes without it.

The direct effect is what a head writes at the asked row, through the final norm as it was recorded and the
unembedding, on the logit of the answer (Elhage et al. 2021). What later layers make of it is not in there. So
for the heads that are of interest the pass is run again without them.
Axes: K heads left out, T tokens, V vocabulary, C width of the model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from model.nn.config import Stack
from model.nn.patches import ablation_hooks
from model.nn.places import Head, Place
from model.profile.battery.kinds import UNASKED, Change, EffectMeasure, HeadEffect
from model.profile.battery.prompts import (
    WANTED,
    LabelCells,
    LabelPrompt,
    WantedAnswers,
    random_prompts,
    sentence_prompts,
)
from model.profile.window import Profiled, direct_effects
from model.run.passes import forward, rows_of_length
from model.system.memory import enough_memory
from model.system.words import Words
from model.trace.arrays import Array, Wide
from model.trace.collect import doubled
from model.trace.records import Token

if TYPE_CHECKING:
    from model.run.model import Model

say = Words("profile.battery_effects")

EFFECT_PROMPTS = 24  # of each label
STANDING_OUT = 8  # heads of each label that are left out beside those whose weights give it
HeadLabel = tuple[str, int, str]  # a sub-layer, a head of it, and a label
NO_WORDS = say("writes_becomes_word")
ACROSS = say("looks_another_text")
UNPROVEN = say("not_proven_model")
FEW = say("tokens_make_fewer", effect_prompts=EFFECT_PROMPTS)
NOT_LEFT_OUT = say("not_left_out_neither")


def head_effects(model: "Model", looks: pd.DataFrame) -> dict[HeadLabel, HeadEffect]:
    """What every head does for every label that it was asked for.

    Every direct effect is computed. Left out are the heads whose weights give the label, and of the others
    for each label the STANDING_OUT with the largest direct effects among those that are clear
    (`Change.is_clear`). looks: the columns layer, head, label, given and prompts. Raises OutOfMemoryError.
    """
    prompts = random_prompts(model, EFFECT_PROMPTS).made
    prompts += sentence_prompts(model, EFFECT_PROMPTS).made
    asked = looks[looks["prompts"] > 0]
    columns = (asked[name].tolist() for name in ("layer", "head", "label"))
    keys: list[HeadLabel] = list(zip(*columns, strict=True))
    given = {key for key, is_given in zip(keys, asked["given"], strict=True) if is_given}
    direct = added_directly(model, prompts)
    wanted = given | _standing_out(direct, [key for key in keys if key not in given])
    left_out = changes_without(model, prompts, wanted)
    found = {}
    for key in keys:
        measure, reasons = measure_of(model, key[0]), []
        if key not in direct:
            unknown = UNPROVEN if "logit_parts" in model.unproven else FEW
            no_answer = ACROSS if Place.named(key[0]).kind == "cross" else NO_WORDS
            reasons.append(no_answer if measure == "moved" else unknown)
        if key not in left_out:
            reasons.append(FEW if key in wanted else NOT_LEFT_OUT)
        changes = (direct.get(key, UNASKED), left_out.get(key, UNASKED))
        found[key] = HeadEffect(*changes, measure, " ".join(dict.fromkeys(reasons)))
    return found


def measure_of(model: "Model", layer: str) -> EffectMeasure:
    """What is measured of a sub-layer's heads: "logit" where its stack writes words, else "moved"."""
    place, shape = Place.named(layer), model.config.shape
    if place.stack == "encoder" or place.kind == "cross" or "logits" in model.unproven:
        return "moved"
    return "moved" if shape == "encoder" else "logit"


def _standing_out(
    direct: Mapping[HeadLabel, Change], others: Iterable[HeadLabel]
) -> set[HeadLabel]:
    clear = [key for key in others if key in direct and direct[key].is_clear("logit")]
    clear.sort(key=lambda key: (key[2], -abs(direct[key].mean)))
    by_label = groupby(clear, key=lambda key: key[2])
    return {key for _, keys in by_label for key in [*keys][:STANDING_OUT]}


class _Tally:
    """The numbers of single prompts, by head and label: (2,), of the answer and of the control."""

    def __init__(self) -> None:
        self._numbers: dict[HeadLabel, list[Wide]] = {}

    def add(self, head: Head, labels: Iterable[str], numbers: Wide) -> None:
        for label in labels:
            self._numbers.setdefault((*head, label), []).append(numbers)

    def changes(self) -> dict[HeadLabel, Change]:
        """The means of those with enough prompts; NaN where a number is not finite."""
        found = {}
        for key, numbers in self._numbers.items():
            if len(numbers) >= EFFECT_PROMPTS:
                wanted, control = np.stack(numbers, 1)
                spread, apart = (
                    one.std(ddof=1) / np.sqrt(len(one)) for one in (wanted, wanted - control)
                )
                change = (float(one) for one in (wanted.mean(), spread, control.mean(), apart))
                found[key] = Change(*(one if np.isfinite(one) else np.nan for one in change))
        return found


def _texts(prompt: LabelPrompt) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    return prompt.source.tokens, prompt.target.tokens if prompt.target else ()


# The direct effects: one recorded pass for each prompt that has an answer.


def added_directly(model: "Model", prompts: Iterable[LabelPrompt]) -> dict[HeadLabel, Change]:
    """What every head of a model that writes words adds to the answers of all prompts that have one."""
    tally, profiled = _Tally(), Profiled.of(model)
    for prompt in prompts:
        answers = prompt.line("decoder").answers
        if profiled.unembedding is None or answers is None:
            continue
        source, target = _texts(prompt)
        with enough_memory(f"{len(source):,} tokens in {model.name}"):
            trace, _ = model.passed(source, target)
        rows, tokens = _rows_of(answers, profiled.unembedding), np.array(answers.rows * 2)
        for layer, effects in direct_effects(profiled, trace, rows, tokens):
            if measure_of(model, layer) == "logit":
                numbers = effects.cpu().double().reshape(len(effects), 2, -1).mean(-1).numpy()
                for head, of_head in enumerate(numbers):
                    tally.add((layer, head), answers.labels, of_head)
    return tally.changes()


def _rows_of(answers: WantedAnswers, unembedding: Array) -> Array:
    """(2R, C): the rows whose product with a last state is the answer after each of R rows, then the control.
    unembedding: less its mean row, so that an answer without a rival is compared with the mean logit."""
    pairs = (*answers.wanted, *answers.control)
    rows: Array = unembedding[[token for token, _ in pairs]]
    for at, (_, against) in enumerate(pairs):
        if against is not None:
            rows[at] -= unembedding[against]
    return rows


# The passes without a head: rows of a batch are one prompt, each without another head.


def changes_without(
    model: "Model", prompts: Iterable[LabelPrompt], wanted: Iterable[HeadLabel]
) -> dict[HeadLabel, Change]:
    """What the passes without the wanted heads change; also for the labels that have the same answers."""
    labels: dict[Head, set[str]] = {}
    order = model.attention_names
    for layer, head, label in sorted(wanted, key=lambda key: (order.index(key[0]), *key[1:])):
        labels.setdefault((layer, head), set()).add(label)
    tally = _Tally()
    words = 0 if model.config.shape == "encoder" else model.config.d_vocab
    for prompt in prompts:
        heads = [one for one, mine in labels.items() if mine & _labels(model, prompt, one[0])]
        if not heads:
            continue
        alone = passes_without(model, prompt, ())
        at_once = rows_of_length(max(map(len, _texts(prompt))), words)
        for start in range(0, len(heads), at_once):
            some = heads[start : start + at_once]
            changed = passes_without(model, prompt, some)
            for number, one in enumerate(some):
                after = _read(model, one[0], changed)[number]
                before = _read(model, one[0], alone)[0]
                for asked, numbers in _changes(model, prompt, one[0], before, after):
                    tally.add(one, asked, numbers)
    return tally.changes()


def passes_without(
    model: "Model", prompt: LabelPrompt, heads: Sequence[Head]
) -> Mapping[Stack | EffectMeasure, Tensor]:
    """(K, T, …): what the passes over a prompt end with, each without one head; one pass and nothing left out
    for no heads. "logit": the logits, of a model that has them; by stack its last vectors. Raises
    OutOfMemoryError."""
    two = model.config.shape == "encoder-decoder"
    rows = [[head] for head in heads] or [[]]
    with enough_memory(say("texts_once", rows=len(rows), model=model.name)):
        ended, recorder = forward(
            model,
            [model.ids(one) for one in _texts(prompt) if one],
            ablation_hooks(rows),
            rows=len(rows),
            level="attention" if two else "nothing",
        )
    found: dict[Stack | EffectMeasure, Tensor] = {"logit": ended}
    for stack in model.stacks():
        found[stack] = recorder.streams[stack][-1] if two else ended
    return found


def _read(model: "Model", layer: str, ended: Mapping[Stack | EffectMeasure, Tensor]) -> Tensor:
    """What the heads of a sub-layer are judged by."""
    measure = measure_of(model, layer)
    return ended[measure if measure == "logit" else Place.named(layer).stack]


def _labels(model: "Model", prompt: LabelPrompt, layer: str) -> set[str]:
    """The labels that a prompt asks the heads of a sub-layer for."""
    if measure_of(model, layer) == "logit":
        answers = prompt.line("decoder").answers
        return set() if answers is None else {*answers.labels}
    return {cells.label for cells in _cells(prompt, layer)}


def _cells(prompt: LabelPrompt, layer: str) -> list[LabelCells]:
    place = Place.named(layer)
    cells = prompt.cross if place.kind == "cross" else prompt.line(place.stack).cells
    return [one for one in cells if one.role == WANTED]


def _changes(
    model: "Model", prompt: LabelPrompt, layer: str, before: Tensor, after: Tensor
) -> Iterator[tuple[set[str], Wide]]:
    """(2,) for some labels: what has changed at the asked rows, and the control. before, after (T, …)."""
    answers = prompt.line("decoder").answers
    if measure_of(model, layer) == "logit" and answers is not None:
        yield {*answers.labels}, leads(after, answers) - leads(before, answers)
    elif measure_of(model, layer) == "moved":
        lengths = torch.linalg.vector_norm(doubled(before), dim=-1)
        moved = torch.linalg.vector_norm(doubled(after) - doubled(before), dim=-1) / lengths
        moved = moved.cpu()
        for cells in _cells(prompt, layer):
            rows = torch.from_numpy(cells.mask.any(1))
            yield {cells.label}, np.array([moved[rows].mean(), moved[~rows].mean()])


def leads(logits: Tensor, answers: WantedAnswers) -> Wide:
    """(2,): how far the logit of the answer lies above what it is compared with, and the same of the control;
    means over the asked rows of logits (T, V)."""
    rows = doubled(logits[list(answers.rows)])  # (R, V)
    means = rows.mean(-1)

    def lead(pairs: Sequence[tuple[int, int | None]]) -> float:
        apart = [
            rows[at, token] - (means[at] if against is None else rows[at, against])
            for at, (token, against) in enumerate(pairs)
        ]
        return float(torch.stack(apart).mean())

    return np.array([lead(answers.wanted), lead(answers.control)])
