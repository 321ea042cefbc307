"""Claims about the next token: who carries it, who lowers it, where it comes up, what a longer text gives."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from model.analysis.heads.contributions import parts_of_logit
from model.nn.places import Head, head_label
from model.papers.claims import PaperQuantity, brief
from model.papers.subject import Measured, Subject, mean_error, named
from model.papers.texts import (
    LONG,
    SEEDS,
    Lists,
    NotAskedError,
    Passage,
    PlacedSentence,
    giving,
    lists,
    passages,
    require_decoder,
    year_sentences,
)
from model.trace.arrays import Array, Wide
from model.trace.trace import Trace

OTHERS = 3  # draws of other heads for each text
CARRIERS = 3  # heads that are left out together: the paper's name movers
LOOKS = 0.1  # of a row: the weight of a head on a word that it looks at
KNOWS = 0.5  # of a logit difference: less is no answer
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the states of the stream, at which it is read
EARLY, LATE = 8, 16  # tokens at the beginning and at the end of a text


def other_name(subject: Subject) -> Measured:
    """Two people, of whom one gives something to …: by how much the logit of the other's name lies above the
    giver's. Control: where a third person gives, so that both names were said once."""
    figure, right = _differences(subject, giving(subject.model))
    control, _ = _differences(subject, giving(subject.model, third=True))
    return Measured(
        PaperQuantity(float(figure.mean()), "is the logit of the other name above the giver's"),
        PaperQuantity(float(control.mean()), "where a third person gives"),
        f"The other name comes first of the two in {right:.0%} of the sentences.",
        len(figure) + len(control),
    )


def _differences(subject: Subject, sentences: Sequence[PlacedSentence]) -> tuple[Wide, float]:
    """(sentence,): logit of the other name − of the giver's after the last token; how often it is above 0."""
    differences = []
    for sentence in sentences:
        last = subject.ended([Passage(sentence.tokens)])[0, -1].double()
        differences.append(float(last[sentence.id("other")] - last[sentence.id("giver")]))
    values = np.array(differences)
    return values, float((values > 0).mean())


def name_movers(subject: Subject) -> Measured:
    """The CARRIERS heads that add most to the difference of the two names, chosen on one half of the
    sentences: how much of it is lost without them on the other half. Control: without as many others."""
    sentences = giving(subject.model)
    half = len(sentences) // 2
    choose, tried = sentences[:half], sentences[half:]
    differences, _ = _differences(subject, tried)
    if differences.mean() < KNOWS:
        raise NotAskedError(
            f"This model does not tell the two names apart: their logits differ by "
            f"{brief(float(differences.mean()))}."
        )
    effects = np.mean(
        [
            direct_effects(
                subject,
                subject.trace(Passage(one.tokens)),
                one.id("other"),
                one.id("giver"),
            )
            for one in choose
        ],
        0,
    )
    heads = subject.heads()
    carriers = frozenset(heads[int(at)] for at in np.argsort(-effects)[:CARRIERS])
    lost = []
    for number, sentence in enumerate(tried):
        others = range(OTHERS * number, OTHERS * (number + 1))  # other heads for each sentence
        sets = [carriers, *(subject.drawn_heads(seed, CARRIERS, carriers) for seed in others)]
        last = subject.without(Passage(sentence.tokens), sets)[:, -1].double()
        lost.append((last[:, sentence.id("other")] - last[:, sentence.id("giver")]).cpu().numpy())
    shares = 1 - np.mean(lost, 0) / differences.mean()
    return Measured(
        PaperQuantity(float(shares[0]), f"of the difference is lost without {CARRIERS} heads"),
        PaperQuantity(float(shares[1:].mean()), f"is lost without {CARRIERS} other heads"),
        f"The heads are {named(carriers)}; the difference is {differences.mean():.2f}.",
        len(sentences),
        OTHERS * len(tried),
    )


def direct_effects(subject: Subject, trace: Trace, token: int, against: int) -> Wide:
    """(head,): what each head of the decoder adds to the difference of two logits at the last position, by
    the direct way."""
    last = trace.require_prediction().shape[0] - 1
    effects = [
        [
            part.effect
            for part in parts_of_logit(subject.model, trace, last, id_)
            if part.kind == "head"
        ]
        for id_ in (token, against)
    ]
    return np.array(effects[0]) - np.array(effects[1])


def copy_suppression(subject: Subject) -> Measured:
    """In lists said twice: of the heads that look at the word that comes next the one that lowers it most
    (against another word of the list), chosen on one half of the lists. How much does the word gain without
    it, on the other half, or lose directly by it, if that is less? Control: without another head."""
    chosen, tried = lists(subject.model), lists(subject.model, first=SEEDS)
    effects, weights = [], []
    for passage, answer, other, before in _half_said(chosen):
        trace = subject.trace(passage)
        effects.append(direct_effects(subject, trace, answer, other))
        weights.append(
            [trace.find(name).weights(head)[-1, before] for name, head in subject.heads()]
        )
    heads, direct, looks = subject.heads(), np.mean(effects, 0), np.mean(weights, 0)
    at = int(np.where(looks >= LOOKS, direct, direct.max()).argmin())
    gains = []
    for number, (passage, answer, other, _) in enumerate(_half_said(tried)):
        others = range(OTHERS * number, OTHERS * (number + 1))  # other heads for each list
        sets: list[set[Head] | frozenset[Head]] = [set(), {heads[at]}]
        sets += [subject.drawn_heads(seed, 1, {heads[at]}) for seed in others]
        last = subject.without(passage, sets)[:, -1].double()
        difference = (last[:, answer] - last[:, other]).cpu().numpy()
        gains.append(difference[1:] - difference[0])
    gained, error = mean_error(np.array(gains)[:, 0])
    lowered = -float(direct[at])
    return Measured(
        PaperQuantity(
            min(gained, lowered),
            "in logit: what the copied word gains without the head, or loses directly by it, if that is less",
        ),
        PaperQuantity(
            float(np.mean(gains, 0)[1:].mean()), "in logit: what it gains without another head"
        ),
        f"The head is {head_label(heads[at])}: it gives the word that comes next "
        f"{looks[at]:.2f} of its weight, and adds {brief(float(direct[at]))} to it by the direct way.",
        2 * len(effects),
        OTHERS * len(gains),
        error,
    )


def _half_said(repeats: Lists) -> list[tuple[Passage, int, int, int]]:
    """Each list, with the first half of it said again; the id of the word that comes next, that of another
    word of the list, and where the word stands."""
    half = repeats.period // 2
    end = repeats.start + repeats.period + half
    before = repeats.start + half
    return [
        (
            Passage(one.tokens[:end]),
            one.tokens[before].id,
            one.tokens[repeats.start + repeats.period - 1].id,
            before,
        )
        for one in repeats.twice
    ]


def logit_lens(subject: Subject) -> Measured:
    """The rank that the model's answer has in the middle of the stream, read as if it were its end; the
    median over all positions. Control: the rank of the answers of other positions."""
    if subject.model.config.shape == "encoder":
        raise NotAskedError("This model has no head that reads tokens.")
    subject.model.require("unembedding")
    ranks: list[Wide] = []
    others: list[Wide] = []
    for passage in passages(subject.model):
        trace = subject.trace(passage)
        answers = np.asarray(trace.require_prediction().all.argmax(-1), np.int64)
        states = trace.residual["decoder"]
        with subject.turn():
            read = [
                subject.model.unembed(states[round(depth * (len(states) - 1))]) for depth in DEPTHS
            ]
        ranks.append(np.array([_ranks(logits, answers) for logits in read]))
        middle = read[DEPTHS.index(0.5)]
        shift = len(answers) // 2
        others.append(_ranks(middle, np.roll(answers, shift)))
    medians = np.median(np.concatenate(ranks, 1), axis=1)
    shown = ", ".join(f"{rank:,.0f}" for rank in medians)
    return Measured(
        PaperQuantity(
            float(medians[DEPTHS.index(0.5)]), "is the median rank of the answer in the middle"
        ),
        PaperQuantity(
            float(np.median(np.concatenate(others))), "is that of other positions' answers"
        ),
        f"From the first state to the last, in quarters: {shown}, of {subject.model.config.d_vocab:,}.",
        SEEDS,
    )


def _ranks(logits: Array, answers: NDArray[np.int64]) -> Wide:
    """(token,): 1 where the answer has the largest logit."""
    own = np.take_along_axis(logits, answers[:, None], -1)
    ranks: Wide = (logits > own).sum(-1) + 1.0
    return ranks


def longer_texts(subject: Subject) -> Measured:
    """By how much the last LATE tokens of a text are easier than its first EARLY ones, in nats. Control: by
    how much they are easier after the beginning of another text."""
    require_decoder(subject.model)
    texts = passages(subject.model, LONG)
    length = min(len(one.tokens) for one in texts)
    if length < EARLY + 2 * LATE:
        raise NotAskedError("This model reads no text that is long enough.")
    own = [Passage(one.tokens[:length]) for one in texts]
    strange = [
        Passage((*texts[at - 1].tokens[: length - LATE], *one.tokens[-LATE:]))
        for at, one in enumerate(own)
    ]
    losses, after_others = (
        np.concatenate([subject.losses([one]) for one in some]) for some in (own, strange)
    )
    early = losses[:, :EARLY].mean(1)
    gained, lost = early - losses[:, -LATE:].mean(1), early - after_others[:, -LATE:].mean(1)
    figure, _ = mean_error(gained)
    control, _ = mean_error(lost)
    _, error = mean_error(gained - lost)
    return Measured(
        PaperQuantity(figure, "nats a token: the end of a text is easier than its beginning"),
        PaperQuantity(control, "nats, where another text stands before its end"),
        f"Texts of {length} tokens.",
        2 * len(own),
        error=error,
    )


def greater_than(subject: Subject) -> Measured:
    """A year, and the century again: the probability of the digits that make a later year − of those that
    make an earlier one. Control: with the years of the other sentences."""
    sentences = year_sentences(subject.model)
    figures, controls = [], []
    for at, one in enumerate(sentences):
        chances = subject.ended([one.passage])[0, -1].double().softmax(-1).cpu()
        figures.append(_later(chances, one.later, one.earlier))
        others = sentences[:at] + sentences[at + 1 :]
        controls.append(np.mean([_later(chances, other.later, other.earlier) for other in others]))
    _, error = mean_error(np.array(figures) - np.array(controls))
    return Measured(
        PaperQuantity(
            float(np.mean(figures)), "of the probability, later years above earlier ones"
        ),
        PaperQuantity(float(np.mean(controls)), "by the years of the other sentences"),
        "",
        len(sentences),
        error=error,
    )


def _later(chances: torch.Tensor, later: tuple[int, ...], earlier: tuple[int, ...]) -> float:
    return float(chances[list(later)].sum() - chances[list(earlier)].sum())
