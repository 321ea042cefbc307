"""Claims about what heads look at and copy: induction and its parts, retrieval, successors, syntax."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from model.analysis.attribution.head_maps import head_map, where_read
from model.analysis.attribution.head_matrices import divided, fold, table_factor
from model.analysis.attribution.modules import wide
from model.analysis.heads.statistics import at_offset, prefix_matching
from model.analysis.stream.stream import embedding_norm
from model.nn.places import Head, Place, head_label
from model.papers.claims import PaperQuantity
from model.papers.subject import Measured, Sample, Subject, layer_of
from model.papers.texts import (
    SEEDS,
    Lists,
    Needle,
    NotAskedError,
    Passage,
    lists,
    needles,
    orders,
    passages,
    require_decoder,
    verbs_with_objects,
)
from model.run.model import Model
from model.system.words import Words
from model.trace.arrays import Wide
from model.trace.records import NormRecord
from model.trace.trace import Trace
from model.training.checkpoints import shipped_training_run, shipped_training_runs

say = Words("papers.heads")

WordNumbers = NDArray[np.int64]  # of words in a list, or of tokens in a vocabulary
PREFIX = say("weight_row_followed")
CLEAR = 0.3  # of a row: a head that gives less has no such job
COPIES = 0.5  # a copying score above this is called copying
RETRIEVES = 0.1  # of the tokens of a needle, as in the paper


def induction(subject: Subject) -> Measured:
    """Lists of random words said twice: the best head's weight on what followed the same word the first
    time. Control: the same head and cells where nothing is said twice."""
    repeats = lists(subject.model)
    scores = prefix_scores(subject, repeats, repeats.twice)
    head = max(scores, key=lambda one: scores[one])
    control = prefix_scores(subject, repeats, repeats.once)[head]
    return Measured(
        PaperQuantity(scores[head], PREFIX),
        PaperQuantity(control, say("same_cells_lists")),
        say("best_head", head_label=head_label(head)),
        2 * len(repeats.twice),
        len(repeats.twice),
    )


def prefix_scores(
    subject: Subject,
    repeats: Lists,
    passages: Sequence[Passage],
    ablated: frozenset[Head] = frozenset(),
) -> dict[Head, float]:
    """The prefix matching of every head (Olsson et al. 2022), in the mean over lists of one length.

    Args:
        repeats: the lists, of which the numbers of their words are read.
        passages: those that are passed.
        ablated: heads that are left out of the passes; their own weights are scored all the same.
    """
    weights = subject.mean_weights(passages, ablated)
    return {head: prefix_matching(rows, repeats.ids) for head, rows in weights.items()}


def second_half(subject: Subject) -> Measured:
    """The loss on the second saying of a list, from its second word on. Control: on as many words that are
    said for the first time."""
    repeats = lists(subject.model)
    words = slice(repeats.start + repeats.period, repeats.start + 2 * repeats.period - 1)
    figure, control = (
        float(subject.losses(some)[:, words].mean()) for some in (repeats.twice, repeats.once)
    )
    return Measured(
        PaperQuantity(figure, say("nats_word_said_second")),
        PaperQuantity(control, say("nats_word_same_places")),
        "",
        2 * len(repeats.twice),
        len(repeats.twice),
    )


def forming(subject: Subject) -> Measured:
    """The best prefix matching at each checkpoint: how much of its whole rise falls between two of them.
    Control: the share of the steps that lie between them."""
    require_decoder(subject.model)
    name = subject.model.name
    if name not in shipped_training_runs():
        raise NotAskedError("This model has no checkpoints of its training.")
    training = shipped_training_run(name)
    best = []
    for step in training.steps:
        at_step = Subject(training.model(step), subject.turn)
        repeats = lists(at_step.model)
        best.append(max(prefix_scores(at_step, repeats, repeats.twice).values()))
    rises = np.diff(best)
    whole, steps = best[-1] - best[0], np.diff(training.steps)
    if whole < CLEAR:
        raise NotAskedError(
            f"No head of this model learns induction: prefix matching ends at {best[-1]:.2f}."
        )
    at = int(rises.argmax())
    return Measured(
        PaperQuantity(float(rises[at] / whole), say("rise_prefix_matching")),
        PaperQuantity(float(steps[at] / steps.sum()), say("steps_training_lie")),
        say(
            "rises_between_steps",
            best=best[at],
            at_best=best[at + 1],
            steps=training.steps[at],
            training_steps=training.steps[at + 1],
        ),
        len(repeats.twice) * len(best),
        len(repeats.twice),
    )


def previous_token(subject: Subject) -> Measured:
    """How much of the best induction head's prefix matching is lost without the best previous-token head of
    the layers before it. Control: without one other head of these layers, in the mean."""
    repeats = lists(subject.model)
    weights = subject.mean_weights(repeats.twice)
    scores = {head: prefix_matching(rows, repeats.ids) for head, rows in weights.items()}
    head = max(scores, key=lambda one: scores[one])
    if scores[head] < CLEAR:
        raise NotAskedError(
            f"This model has no induction head: {head_label(head)} has a prefix matching of "
            f"{scores[head]:.2f}, and less than {CLEAR:g} is none."
        )
    earlier = [one for one in weights if layer_of(one) < layer_of(head)]
    if len(earlier) < 2:
        raise NotAskedError(f"The induction head {head_label(head)} has no layer before it.")
    feeding = max(earlier, key=lambda one: at_offset(weights[one], -1))
    others = [one for one in earlier if one != feeding]
    some = np.random.default_rng(0).permutation(len(others))[: SEEDS // 3]

    def lost(without: Head) -> float:
        left = prefix_scores(subject, repeats, repeats.twice, frozenset({without}))[head]
        return 1 - left / scores[head]

    control = float(np.mean([lost(others[int(at)]) for at in some]))
    return Measured(
        PaperQuantity(lost(feeding), say("prefix_matching_lost", head_label=head_label(head))),
        PaperQuantity(control, say("lost_without_another")),
        say(
            "previous_token_head",
            head_label=head_label(feeding),
            at_offset=at_offset(weights[feeding], -1),
        ),
        len(repeats.twice),
        len(some),
    )


def copying(subject: Subject) -> Measured:
    """The share of heads whose map from token to logits copies: a copying score above COPIES, over the whole
    vocabulary. Control: the same with the tokens of the logits exchanged by chance."""
    require_decoder(subject.model)
    subject.model.require("output")
    subject.model.require("unembedding")
    trace = subject.trace(passages(subject.model)[0])
    trace.require_prediction()
    read, output = (table.astype(np.float32) for table in token_tables(subject.model, trace))
    maps = [
        (
            head_map(subject.model, trace, attention, head, "value").matrix,
            where_read(subject.model, trace, attention, "value"),
            wide(subject.model.w_o(attention.name, head)),
        )
        for attention in trace.attention
        for head in range(attention.heads)
    ]
    folded = [
        (fold(norm if isinstance(norm, NormRecord) else None, value), written)
        for value, norm, written in maps
    ]

    def scores(order: WordNumbers | slice) -> Wide:
        with subject.turn():
            products = (output[order].T @ read).astype(np.float64)  # (C, C)
        return np.array(
            [_copying(written.T @ products @ value.T) for value, written in folded], np.float64
        )

    own = scores(slice(None))
    shuffled = [
        float((scores(np.random.default_rng(seed).permutation(len(output))) > COPIES).mean())
        for seed in range(SEEDS)
    ]
    best = int(own.argmax())
    heads = subject.heads()
    return Measured(
        PaperQuantity(float((own > COPIES).mean()), say("heads_copying_score", copies=COPIES)),
        PaperQuantity(float(np.mean(shuffled)), say("exchanged_tokens")),
        say("largest_score", best_own=own[best], head_label=head_label(heads[best])),
        0,
        SEEDS,
    )


def token_tables(model: Model, trace: Trace) -> tuple[Wide, Wide]:
    """(V, C) each: the vectors of all tokens as the heads of the decoder read them, each divided by its
    deviation where a norm stands before; and the rows that make the logits, with the last norm folded in.
    """
    summands = trace.summands["decoder"]
    factor = table_factor(model, summands["tokens"], trace.tokens_of("decoder"))
    vectors = factor * model.embedding.astype(np.float64)
    if (first := embedding_norm(trace, "decoder")) is not None:
        vectors = divided(first, vectors, centred=True) * first.gamma + first.beta
    norm = where_read(model, trace, trace.attention[0], "value")
    if isinstance(norm, NormRecord):
        vectors = divided(norm, vectors)
    final = {one.name: one for one in trace.norms}.get(Place("decoder", None, "final").norm)
    matrix = (model.module.output or model.module.embedding.tokens).weight
    return vectors, fold(final, wide(matrix))


def _copying(product: Wide) -> float:
    """Σλ / Σ|λ| of a D × D matrix (Elhage et al. 2021)."""
    values = np.linalg.eigvals(product)
    return float(values.real.sum() / max(np.abs(values).sum(), np.finfo(float).tiny))


def retrieval(subject: Subject) -> Measured:
    """A needle among other words begins again at the end. Of the words that the model copies right: the share
    that it does not without the heads that fetch more than RETRIEVES of a needle. Control: without as many
    other heads, others for each text."""
    model, texts = subject.model, needles(subject.model)
    scores, before = retrieval_scores(subject, texts)
    if before < RETRIEVES:
        raise NotAskedError(
            f"This model does not copy the needle: {before:.0%} of its words come back."
        )
    retrieving = frozenset(head for head, score in scores.items() if score > RETRIEVES)
    share = len(retrieving) / len(scores)
    if not 0 < share <= 0.5:
        raise NotAskedError(
            f"{share:.0%} of the heads of this model retrieve: no others are left to compare with."
        )
    copied, lost = 0, np.zeros(2)
    for number, needle in enumerate(texts):
        others = subject.drawn_heads(number, len(retrieving), retrieving)
        sets: list[frozenset[Head]] = [frozenset(), retrieving, others]
        logits = subject.without(needle.passage, sets)
        ids = model.ids(needle.passage.tokens)[0, needle.keys]
        own, *without = (logits[:, needle.rows].argmax(-1) == ids).cpu().numpy()
        copied += own.sum()
        lost += [(own & ~right).sum() for right in without]
    lost /= copied
    best = max(scores, key=lambda one: scores[one])
    return Measured(
        PaperQuantity(float(lost[0]), say("copied_words_lost")),
        PaperQuantity(float(lost[1]), say("lost_without_many")),
        say(
            "heads_retrieve_best",
            retrieving=len(retrieving),
            scores=len(scores),
            share=share,
            head_label=head_label(best),
            best_scores=scores[best],
            before=before,
        ),
        len(texts),
        len(texts),
    )


def retrieval_scores(subject: Subject, texts: Sequence[Needle]) -> tuple[dict[Head, float], float]:
    """By head, how many of a needle's words the model copies right while the head's largest weight lies on
    the word (Wu et al. 2024, 2); and how many it copies right."""
    scores: dict[Head, float] = dict.fromkeys(subject.heads(), 0.0)
    right = 0.0
    for needle in texts:
        trace = subject.trace(needle.passage)
        wanted = [trace.tokens[key].id for key in needle.keys]
        logits = trace.require_prediction().rows(needle.rows[0], needle.rows[-1] + 1)
        copied = logits.argmax(-1) == wanted
        right += float(copied.mean()) / len(texts)
        for name, head in scores:
            largest = trace.find(name).weights(head)[needle.rows].argmax(-1)
            fetched = copied & (largest == needle.keys)
            scores[name, head] += float(fetched.mean()) / len(texts)
    return scores, right


def successors(subject: Subject) -> Measured:
    """For each head, how often its map sends a word of a known order to the next word, among those of its
    order. Read from the stream after the first layer. Control: the best head for orders by chance."""
    model = subject.model
    model.require("output")
    model.require("unembedding")
    known = orders(model)
    traces = [subject.trace(Passage(text)) for order in known for text in order.texts]
    trace = traces[0]
    each = (len(trace.residual["decoder"]) - 1) // len(trace.attention)  # states that a layer adds
    states = np.array([one.residual["decoder"][each][-1] for one in traces], np.float64)
    _, output = token_tables(model, trace)
    heads, logits = [], []
    for attention in trace.attention[1:]:
        where = where_read(model, trace, attention, "value")
        norm = where if isinstance(where, NormRecord) else None
        read = states if norm is None else divided(norm, states)
        for head in range(attention.heads):
            value = head_map(model, trace, attention, head, "value").matrix
            folded = fold(norm, value)
            heads.append((attention.name, head))
            logits.append(read @ folded.T @ wide(model.w_o(attention.name, head)).T)
    if not heads:
        raise NotAskedError("This model has one layer only.")
    choices, start = [], 0  # (head, word) of each order: the word that each but the last is sent to
    for order in known:
        rows = output[[word.id for word in order.words]]
        of_order = np.array([one[start : start + len(rows) - 1] @ rows.T for one in logits])
        choices.append(of_order.argmax(-1))
        start += len(rows)

    def shares(following: Callable[[int], WordNumbers]) -> Wide:
        hits = [chosen == following(chosen.shape[1]) for chosen in choices]
        return np.asarray(np.concatenate(hits, 1).mean(1))

    own = shares(lambda count: np.arange(1, count + 1, dtype=np.int64))
    chance = [float(shares(partial(_mixed, seed=seed)).max()) for seed in range(SEEDS)]
    best = int(own.argmax())
    return Measured(
        PaperQuantity(float(own[best]), say("words_sent_next")),
        PaperQuantity(float(np.mean(chance)), say("best_head_orders")),
        say("best_head_over_words", head_label=head_label(heads[best]), start=start - len(known)),
        len(traces),
        SEEDS,
    )


def _mixed(count: int, seed: int) -> WordNumbers:
    """(count,): the next word of each word but the last, in an order by chance."""
    ring = np.random.default_rng(seed).permutation(count + 1)
    following = np.empty(count + 1, np.int64)
    following[ring] = np.roll(ring, -1)
    return following[:count]


def syntax(subject: Subject) -> Measured:
    """The best head's share of objects whose largest weight, special and first tokens aside, lies on their
    verb: it is chosen on one half of the sentences and tried on the other. Control: the verb's commonest
    distance in the one half, in the same sentences of the other."""
    sentences = verbs_with_objects(subject.model)
    traces = [subject.trace(subject.started(one.tokens)) for one in sentences]
    members = [one.name for one in traces[0].attention if one.stack == traces[0].source]
    hits: dict[Head, Wide] = {}
    for name in members:
        for head in range(traces[0].find(name).heads):
            hits[name, head] = np.array(
                [
                    _looked_at(trace, name, head, one.places["object"]) == one.places["verb"]
                    for trace, one in zip(traces, sentences, strict=True)
                ],
                np.float64,
            )
    apart = np.array([one.places["verb"] - one.places["object"] for one in sentences])
    choose, tried = slice(None, len(sentences) // 2), slice(len(sentences) // 2, None)
    best = max(hits, key=lambda head: hits[head][choose].mean())
    distances, counts = np.unique(apart[choose], return_counts=True)
    offset = int(distances[counts.argmax()])
    return Measured(
        Sample(hits[best][tried], say("objects_look_most")),
        Sample(
            (apart[tried] == offset).astype(np.float64),
            say("best_distance_before", offset=abs(offset)),
        ),
        f"The head is {head_label(best)}.",
        len(sentences),
    )


def _looked_at(trace: Trace, name: str, head: int, query: int) -> int:
    """The key with the largest weight; not a special token, the first one, nor the query itself."""
    row = trace.find(name).weights(head)[query].astype(np.float64)
    barred = [at for at, token in enumerate(trace.tokens) if token.special]
    row[[0, query, *barred]] = -1
    return int(row.argmax())
