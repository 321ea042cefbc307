"""Claims about the next token: who carries it, who lowers it, where it comes up, what a longer text gives."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from model.analysis.heads.contributions import parts_of_logit
from model.nn.places import Head, head_label
from model.papers.claims import PaperQuantity, brief
from model.papers.subject import Measured, Sample, Subject, named
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
from model.system.words import Words
from model.trace.arrays import Array, Wide
from model.trace.trace import Trace

say = Words("papers.next_token")

OTHERS = 3  # draws of other heads for each text
CARRIERS = 3  # heads that are left out together: the paper's name movers
LOOKS = 0.1  # of a row: the weight of a head on a word that it looks at
KNOWS = 0.5  # of a logit difference: less is no answer
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the states of the stream, at which it is read
NEAR, LATE = 8, 16  # tokens at the end of a text, and those right before them


def other_name(subject: Subject) -> Measured:
    """Two people, of whom one gives something to …: by how much the logit of the other's name lies above the
    giver's. Control: where a third person gives, so that both names were said once."""
    figure, right = _differences(subject, giving(subject.model))
    control, _ = _differences(subject, giving(subject.model, third=True))
    return Measured(
        PaperQuantity(float(figure.mean()), say("logit_other_name")),
        PaperQuantity(float(control.mean()), say("third_person_gives")),
        say("other_name_comes", right=right),
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
        PaperQuantity(float(shares[0]), say("difference_lost_without", carriers=CARRIERS)),
        PaperQuantity(float(shares[1:].mean()), say("lost_without_other", carriers=CARRIERS)),
        say("heads_difference", named=named(carriers), mean_differences=differences.mean()),
        len(sentences),
        OTHERS * len(tried),
    )


def direct_effects(subject: Subject, trace: Trace, token: int, against: int) -> Wide:
    """(head,): what each head of the decoder adds to the difference of two logits at the last position, by
    the direct way.

    Args:
        token: the id whose logit counts.
        against: the id whose logit is subtracted.
    """
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
    (against another word of the list), chosen on one half of the lists. On the other half, how much does the
    word gain without it, in the mean, or lose directly by it, if that is less? Control: without another head,
    on the same lists."""
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
    gains, lowered = [], []
    for number, (passage, answer, other, _) in enumerate(_half_said(tried)):
        others = range(OTHERS * number, OTHERS * (number + 1))  # other heads for each list
        sets: list[set[Head] | frozenset[Head]] = [set(), {heads[at]}]
        sets += [subject.drawn_heads(seed, 1, {heads[at]}) for seed in others]
        last = subject.without(passage, sets)[:, -1].double()
        difference = (last[:, answer] - last[:, other]).cpu().numpy()
        gains.append(difference[1:] - difference[0])
        lowered.append(-direct_effects(subject, subject.trace(passage), answer, other)[at])
    unit = say("logit_copied_word")
    gained, *without_others = (np.array(column) for column in zip(*gains, strict=True))
    figures = Sample(gained, unit), Sample(np.array(lowered), unit)
    return Measured(
        min(figures, key=lambda one: one.value),
        Sample(np.mean(without_others, 0), say("logit_gains_without")),
        say(
            "head_gives_word",
            head_label=head_label(heads[at]),
            looks=looks[at],
            brief=brief(-figures[1].value),
        ),
        2 * len(effects),
        OTHERS * len(gains),
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
        PaperQuantity(float(medians[DEPTHS.index(0.5)]), say("median_rank_answer")),
        PaperQuantity(float(np.median(np.concatenate(others))), say("other_positions_answers")),
        say("first_state_last", shown=shown, d_vocab=subject.model.config.d_vocab),
        SEEDS,
    )


def _ranks(logits: Array, answers: NDArray[np.int64]) -> Wide:
    """(token,): 1 where the answer has the largest logit."""
    own = np.take_along_axis(logits, answers[:, None], -1)
    ranks: Wide = (logits > own).sum(-1) + 1.0
    return ranks


def longer_texts(subject: Subject) -> Measured:
    """By how much the last LATE tokens of a text are easier after all that stands before them than after the
    NEAR tokens right before them, in nats. Control: after the same NEAR tokens and the beginning of another
    text."""
    require_decoder(subject.model)
    texts = [one.tokens for one in passages(subject.model, LONG)]
    length = min(map(len, texts))
    # How many special tokens stand before each text.
    first = min(
        next((at for at, token in enumerate(one) if not token.special), len(one)) for one in texts
    )
    if length < first + NEAR + 2 * LATE:
        raise NotAskedError("This model reads no text that is long enough.")
    own = [one[:length] for one in texts]
    ends = [one[-NEAR - LATE :] for one in own]
    begun = length - NEAR - LATE
    after_few = [one[:first] + end for one, end in zip(own, ends, strict=True)]
    after_another = [own[at - 1][:begun] + end for at, end in enumerate(ends)]
    few, all_, another = (
        np.array([subject.losses([Passage(one)])[0, -LATE:].mean() for one in some])
        for some in (after_few, own, after_another)
    )
    return Measured(
        Sample(few - all_, say("nats_token_text", near=NEAR)),
        Sample(few - another, say("nats_another_text")),
        f"Texts of {length} tokens.",
        3 * len(own),
    )


def greater_than(subject: Subject) -> Measured:
    """A year, and the century again: the probability of the digits that make a later year − of those that
    make the same or an earlier one. Control: with the years of the other sentences."""
    sentences = year_sentences(subject.model)
    figures, controls = [], []
    for at, one in enumerate(sentences):
        chances = subject.ended([one.passage])[0, -1].double().softmax(-1).cpu()
        figures.append(_later(chances, one.later, one.others))
        others = sentences[:at] + sentences[at + 1 :]
        controls.append(np.mean([_later(chances, other.later, other.others) for other in others]))
    return Measured(
        Sample(np.array(figures), say("probability_later_years")),
        Sample(np.array(controls), say("years_other_sentences")),
        "" if all(one.both for one in sentences) else say("only_first_digits"),
        len(sentences),
    )


def _later(chances: torch.Tensor, later: tuple[int, ...], others: tuple[int, ...]) -> float:
    return float(chances[list(later)].sum() - chances[list(others)].sum())
