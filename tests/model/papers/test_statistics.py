"""Figure, control and standard error of every claim, each recomputed by plain loops over single passes."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest

from model import Model, Trace
from model.analysis.attribution.head_maps import head_map
from model.nn.places import Head, head_label
from model.papers import asking, next_token
from model.papers.claims import claims
from model.papers.heads import token_tables
from model.papers.sinks import FEW_TOKENS
from model.papers.subject import Measured, Subject
from model.papers.texts import (
    Lists,
    Passage,
    giving,
    lists,
    needles,
    orders,
    passages,
    verbs_with_objects,
    year_sentences,
)
from model.training.checkpoints import shipped_training_run
from tests.model.papers.plain import (
    Both,
    Tokens,
    Values,
    adversarial_weights,
    chances,
    ended,
    erasure,
    losses,
    relevance_propagation,
    rollout,
    shuffled_weights,
    value_norms,
    value_zeroing,
    weights_of,
)
from tests.model.papers.wired import subject
from tests.model.tiny import build, loaded


def named_in(asked: Subject, measured: Measured, count: int = 1) -> list[Head]:
    """The first heads that a note names."""
    labels = {head_label(head): head for head in asked.heads()}
    words = measured.note.replace(":", " ").replace(",", " ").replace(".", " ").split()
    return [labels[word] for word in words if word in labels][:count]


# Copying from the text


def copied(asked: Subject, repeats: Lists, passage: Passage, head: Head, **change: object) -> float:
    """What a row gives to what followed its word in the first list, in the mean over the second list."""
    weights = weights_of(asked, passage.tokens, head, **change)
    first, again = repeats.start, repeats.start + repeats.period
    rows = range(repeats.period)
    return float(np.mean([weights[again + at, first + at + 1] for at in rows]))


def best_copier(asked: Subject, repeats: Lists) -> tuple[Head, float]:
    scores = {
        head: np.mean([copied(asked, repeats, one, head) for one in repeats.twice])
        for head in asked.heads()
    }
    best = max(scores, key=lambda head: scores[head])
    return best, float(scores[best])


def induction(asked: Subject, measured: Measured) -> Both:
    repeats = lists(asked.model)
    best, score = best_copier(asked, repeats)
    return score, float(np.mean([copied(asked, repeats, one, best) for one in repeats.once]))


def second_half(asked: Subject, measured: Measured) -> Both:
    repeats = lists(asked.model)
    first = repeats.start + repeats.period + 1  # the second word of the second list
    of = [
        np.mean([losses(asked, one.tokens)[first - 1 : first + repeats.period - 2] for one in some])
        for some in (repeats.twice, repeats.once)
    ]
    return float(of[0]), float(of[1])


def forming(asked: Subject, measured: Measured) -> Both:
    training = shipped_training_run(asked.model.name)
    best = []
    for step in training.steps:
        at_step = subject(training.model(step))
        best.append(best_copier(at_step, lists(at_step.model))[1])
    rises = [after - before for before, after in pairwise(best)]
    at = rises.index(max(rises))
    first, *_, last = training.steps
    apart = training.steps[at + 1] - training.steps[at]
    return rises[at] / (best[-1] - best[0]), apart / (last - first)


def previous_token(asked: Subject, measured: Measured) -> Both:
    repeats = lists(asked.model)
    best, score = best_copier(asked, repeats)
    earlier = [head for head in asked.heads() if head[0] < best[0]]

    def lost(head: Head) -> float:
        off = frozenset({head})
        left = [copied(asked, repeats, one, best, ablated=off) for one in repeats.twice]
        return float(1 - np.mean(left) / score)

    back = {
        head: np.mean([np.diag(weights_of(asked, one.tokens, head), -1) for one in repeats.twice])
        for head in earlier
    }
    feeding = max(back, key=lambda head: back[head])
    return lost(feeding), float(np.mean([lost(head) for head in earlier if head != feeding]))


def longer_texts(asked: Subject, measured: Measured) -> Both:
    texts = [one.tokens for one in passages(asked.model, 64)]
    length = min(map(len, texts))
    gains, gains_of_others = [], []
    for at, text in enumerate(texts):
        end, other = text[length - 24 : length], texts[at - 1]
        alone = losses(asked, end)[-16:].mean()
        gains.append(alone - losses(asked, text[:length])[-16:].mean())
        gains_of_others.append(alone - losses(asked, (*other[: length - 24], *end))[-16:].mean())
    return np.array(gains), np.array(gains_of_others)


def retrieval(asked: Subject, measured: Measured) -> Both:
    texts = needles(asked.model)
    right, fetched = [], dict.fromkeys(asked.heads(), 0)
    for needle in texts:
        trace, words = asked.trace(needle.passage), [one.id for one in needle.passage.tokens]
        logits = np.array(trace.logits)
        right.append([int(logits[row].argmax()) == words[row + 1] for row in needle.rows])
        for place, head in fetched:
            largest = trace.find(place).weights(head)[needle.rows].argmax(-1)
            fetched[place, head] += int((np.array(right[-1]) & (largest == needle.keys)).sum())
    words_in_all = sum(map(len, right))
    retrieving = frozenset(head for head, hits in fetched.items() if hits / words_in_all > 0.1)
    lost = []
    for draw in (lambda number: retrieving, lambda number: other_heads(number)):

        def other_heads(number: int) -> frozenset[Head]:
            return asked.drawn_heads(number, len(retrieving), retrieving)

        gone = 0
        for number, (needle, own) in enumerate(zip(texts, right, strict=True)):
            logits = ended(asked, needle.passage.tokens, ablated=draw(number))
            words = [one.id for one in needle.passage.tokens]
            still = [int(logits[row].argmax()) == words[row + 1] for row in needle.rows]
            gone += sum(was and not now for was, now in zip(own, still, strict=True))
        lost.append(gone / sum(map(sum, right)))
    return lost[0], lost[1]


def copy_suppression(asked: Subject, measured: Measured) -> Both:
    repeats = lists(asked.model, first=12)
    (head,), half = named_in(asked, measured), repeats.period // 2
    gained, lowered, without_others = [], [], []
    for number, passage in enumerate(repeats.twice):
        tokens = passage.tokens[: repeats.start + repeats.period + half]
        answer = tokens[repeats.start + half].id
        other = tokens[repeats.start + repeats.period - 1].id

        def lead(*heads: Head, tokens: Tokens = tokens, of: tuple[int, int] = (answer, other)):
            last = ended(asked, tokens, ablated=frozenset(heads))[-1]
            return last[of[0]] - last[of[1]]

        gained.append(lead(head) - lead())
        drawn = [asked.drawn_heads(seed, 1, {head}) for seed in range(3 * number, 3 * number + 3)]
        without_others.append(np.mean([lead(*one) - lead() for one in drawn]))
        lowered.append(-direct(asked, asked.trace(Passage(tokens)), head, answer, other))
    figure = min(gained, lowered, key=np.mean)
    return np.array(figure), np.array(without_others)


def direct(asked: Subject, trace: Trace, head: Head, token: int, against: int) -> float:
    """What a head adds at the last position to the difference of two logits, through the final norm."""
    norm = {one.name: one for one in trace.norms}["decoder.final.norm"]
    matrix = (asked.model.module.output or asked.model.module.embedding.tokens).weight.double()
    written = asked.model.head_output(trace.find(head[0]), head[1])[-1].astype(np.float64)
    normed = (written - written.mean()) * norm.inverse_deviation[-1] * norm.gamma
    return float(normed @ (matrix[token] - matrix[against]).detach().numpy())


# The first token and the largest numbers


def of_key(asked: Subject, key: int) -> tuple[Values, Values]:
    """(text and head,): the mean weight of other tokens on a key; its value's length in means of the
    others'."""
    weights, ratios = [], []
    for passage in passages(asked.model):
        trace = asked.trace(passage)
        for place, head in asked.heads():
            attention = trace.find(place)
            lengths = np.linalg.norm(attention.value[head].astype(np.float64), axis=-1)
            weights.append(attention.weights(head)[key + 1 :, key].mean())
            ratios.append(lengths[key] / np.delete(lengths, key).mean())
    return np.array(weights), np.array(ratios)


def first_token(asked: Subject, measured: Measured) -> Both:
    weights, _ = of_key(asked, 0)
    assert f" {(weights > 0.3).mean():.0%} " in measured.note
    return float(weights.mean()), float(of_key(asked, 1)[0].mean())


def sink_values(asked: Subject, measured: Measured) -> Both:
    (weights, ratios), (_, of_second) = of_key(asked, 0), of_key(asked, 1)
    return float(ratios[weights > 0.3].mean()), float(of_second[weights > 0.3].mean())


def states_read(trace: Trace) -> Iterator[Values]:
    """(T, C): by each layer. Each of two sub-layers adds one state."""
    each = (len(trace.residual["decoder"]) - 1) // len(trace.attention)
    for layer in range(len(trace.attention)):
        yield np.abs(trace.residual["decoder"][layer * each].astype(np.float64))


def massive(asked: Subject, measured: Measured) -> Both:
    largest, others = [], []
    for passage in passages(asked.model, FEW_TOKENS):
        states = list(states_read(asked.trace(passage)))
        state = max(states, key=lambda one: one.max() / np.median(one))
        token = state.max(1).argmax()
        largest.append(state.max() / np.median(state))
        others.append(np.delete(state, token, 0).max() / np.median(state))
    return float(np.mean(largest)), float(np.mean(others))


def massive_at_zero(asked: Subject, measured: Measured) -> Both:
    """Of a model whose first position has 50,000 in dimension 5, from its first layer on."""
    rises, of_others = [], []
    for seed, passage in enumerate(passages(asked.model, FEW_TOKENS)):
        width = asked.model.config.d_model
        other = int(np.random.default_rng(seed).choice(np.delete(np.arange(width), 5)))
        before = losses(asked, passage.tokens).mean()
        for dimension, found in ((5, rises), (other, of_others)):
            gone = frozenset({("decoder.0.self", 0, dimension, 0.0)})
            found.append(losses(asked, passage.tokens, stream=gone).mean() - before)
    return float(np.mean(rises)), float(np.mean(of_others))


# The next token


def leads(asked: Subject, *, third: bool) -> list[float]:
    found = []
    for one in giving(asked.model, third=third):
        last = ended(asked, one.tokens)[-1]
        found.append(last[one.id("other")] - last[one.id("giver")])
    return found


def other_name(asked: Subject, measured: Measured) -> Both:
    return float(np.mean(leads(asked, third=False))), float(np.mean(leads(asked, third=True)))


def name_movers(asked: Subject, measured: Measured) -> Both:
    every = giving(asked.model)
    choose, tried = every[: len(every) // 2], every[len(every) // 2 :]
    traces = [asked.trace(Passage(one.tokens)) for one in choose]
    added = {
        head: np.mean(
            [
                direct(asked, trace, head, one.id("other"), one.id("giver"))
                for trace, one in zip(traces, choose, strict=True)
            ]
        )
        for head in asked.heads()
    }
    carriers = frozenset(sorted(added, key=lambda head: -added[head])[:3])

    def lead(one: object, heads: frozenset[Head]) -> float:
        last = ended(asked, one.tokens, ablated=heads)[-1]  # type: ignore[attr-defined]
        return float(last[one.id("other")] - last[one.id("giver")])  # type: ignore[attr-defined]

    own = np.mean([lead(one, frozenset()) for one in tried])
    without = np.mean([lead(one, carriers) for one in tried])
    without_others = np.mean(
        [
            lead(one, asked.drawn_heads(3 * number + draw, 3, carriers))
            for number, one in enumerate(tried)
            for draw in range(3)
        ]
    )
    return float(1 - without / own), float(1 - without_others / own)


def greater_than(asked: Subject, measured: Measured) -> Both:
    sentences = year_sentences(asked.model)
    own, others = [], []
    for one in sentences:
        shares = chances(ended(asked, one.passage.tokens)[-1])
        apart = [shares[list(of.later)].sum() - shares[list(of.others)].sum() for of in sentences]
        mine = sentences.index(one)
        own.append(apart[mine])
        others.append(np.mean(apart[:mine] + apart[mine + 1 :]))
    return np.array(own), np.array(others)


def logit_lens(asked: Subject, measured: Measured) -> Both:
    ranks, of_others = [], []
    for passage in passages(asked.model):
        trace = asked.trace(passage)
        states, answers = trace.residual["decoder"], np.array(trace.logits).argmax(-1).tolist()
        logits = asked.model.unembed(states[round((len(states) - 1) / 2)])
        shifted = answers[-(len(answers) // 2) :] + answers[: -(len(answers) // 2)]
        for row, own, other in zip(logits, answers, shifted, strict=True):
            ranks.append(1 + sum(one > row[own] for one in row.tolist()))
            of_others.append(1 + sum(one > row[other] for one in row.tolist()))
    return float(np.median(ranks)), float(np.median(of_others))


# What heads have learned


def through_heads(asked: Subject, trace: Trace) -> Iterator[tuple[Head, Values]]:
    """(C, C): what a head makes of what its sub-layer reads, before W_U; the model's norms are folded in by
    `token_tables`."""
    norms = {one.name: one for one in trace.norms}
    for place, head in asked.heads():
        value = head_map(asked.model, trace, trace.find(place), head, "value").matrix  # (D, C)
        gamma = norms[f"{place}.norm"].gamma.astype(np.float64)
        folded = value * gamma
        folded -= folded.mean(1, keepdims=True)  # the norm takes the mean away
        yield (place, head), asked.model.w_o(place, head).double().numpy() @ folded


def copying(asked: Subject, measured: Measured) -> Both:
    trace = asked.trace(passages(asked.model)[0])
    read, output = token_tables(asked.model, trace)  # (V, C) each

    def share(order: Values) -> float:
        scores = []
        for _, through in through_heads(asked, trace):
            values = np.linalg.eigvals(read @ through.T @ output[order].T)  # of the V × V matrix
            scores.append(values.real.sum() / np.abs(values).sum())
        return float(np.mean(np.array(scores) > 0.5))

    count = len(output)
    drawn = [np.random.default_rng(seed).permutation(count) for seed in range(12)]
    return share(np.arange(count)), float(np.mean([share(order) for order in drawn]))


def successors(asked: Subject, measured: Measured) -> Both:
    known = orders(asked.model)
    traces = [[asked.trace(Passage(text)) for text in one.texts] for one in known]
    _, output = token_tables(asked.model, traces[0][0])
    later = [head for head in asked.heads() if not head[0].startswith("decoder.0")]

    def sent(head: Head, through: Values) -> list[list[int]]:
        """Of each order: to which of its words the map sends each word but the last."""
        found = []
        for order, texts in zip(known, traces, strict=True):
            rows = output[[word.id for word in order.words]]
            found.append([])
            for trace in texts[:-1]:
                norm = {one.name: one for one in trace.norms}[f"{head[0]}.norm"]
                state = trace.residual["decoder"][2][-1].astype(np.float64)  # after the first layer
                deviation = np.sqrt(state.var() + norm.epsilon)
                found[-1].append(
                    int((rows @ through @ (state - state.mean()) / deviation).argmax())
                )
        return found

    choices = [
        sent(head, through) for head, through in through_heads(asked, traces[0][0]) if head in later
    ]

    def best(following: Callable[[int], Sequence[int]]) -> float:
        shares = []
        for of_head in choices:
            hits = [
                one == wanted
                for chosen in of_head
                for one, wanted in zip(chosen, following(len(chosen)), strict=True)
            ]
            shares.append(np.mean(hits))
        return float(max(shares))

    def by_chance(count: int, seed: int) -> list[int]:
        ring = np.random.default_rng(seed).permutation(count + 1).tolist()
        after = {one: ring[(at + 1) % len(ring)] for at, one in enumerate(ring)}
        return [after[at] for at in range(count)]

    chance = [best(lambda count, seed=seed: by_chance(count, seed)) for seed in range(12)]
    return best(lambda count: range(1, count + 1)), float(np.mean(chance))


def syntax(asked: Subject, measured: Measured) -> Both:
    sentences = verbs_with_objects(asked.model)
    half = len(sentences) // 2
    hits: dict[Head, list[bool]] = {}
    for head in asked.heads():
        hits[head] = []
        for one in sentences:
            row = weights_of(asked, one.tokens, head)[one.places["object"]]
            keys = range(1, one.places["object"])
            hits[head].append(max(keys, key=lambda key: row[key]) == one.places["verb"])
    best = max(hits, key=lambda head: sum(hits[head][:half]))
    assert best in named_in(asked, measured)
    apart = [one.places["object"] - one.places["verb"] for one in sentences]
    commonest = max(sorted({*apart[:half]}, reverse=True), key=apart[:half].count)
    by_distance = [one == commonest for one in apart[half:]]
    return np.array(hits[best][half:], float), np.array(by_distance, float)


def of_a_large_number() -> Model:
    model = build("attention-only", positions="learned")
    table = model.module.embedding.positions
    table.weight.data[0, 5] += 5e4
    return model


PLAIN: dict[str, tuple[Callable[[Subject, Measured], Both], str]] = {
    "induction": (induction, "stories"),
    "second-half": (second_half, "induction"),
    "forming": (forming, "induction"),
    "previous-token": (previous_token, "induction"),
    "longer-texts": (longer_texts, "stories"),
    "retrieval": (retrieval, "stories"),
    "copy-suppression": (copy_suppression, "induction"),
    "first-token": (first_token, "stories"),
    "sink-values": (sink_values, "stories"),
    "massive": (massive, "house-gpt"),
    "massive-at-zero": (massive_at_zero, "large"),
    "other-name": (other_name, "stories"),
    "name-movers": (name_movers, "stories"),
    "greater-than": (greater_than, "house-gpt"),
    "logit-lens": (logit_lens, "stories"),
    "copying": (copying, "induction"),
    "successors": (successors, "house-gpt"),
    "syntax": (syntax, "stories"),
    "shuffled-weights": (shuffled_weights, "induction"),
    "adversarial-weights": (adversarial_weights, "induction"),
    "erasure": (erasure, "stories"),
    "relevance-propagation": (relevance_propagation, "house-gpt"),
    "value-zeroing": (value_zeroing, "house-gpt"),
    "value-norms": (value_norms, "stories"),
    "rollout": (rollout, "stories"),
}


def test_each_claim_is_recomputed() -> None:
    assert list(PLAIN) == list(claims())


@pytest.mark.parametrize("name", PLAIN)
def test_figure_control_and_error_are_those_of_plain_loops(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, of = PLAIN[name]
    monkeypatch.setattr(next_token, "KNOWS", -np.inf)  # no small model tells the two names apart
    asked = subject(of_a_large_number() if of == "large" else loaded(of))
    measured = asking.MEASUREMENTS[name](asked)
    figure, control = plain(asked, measured)
    assert measured.figure.value == pytest.approx(np.mean(figure), rel=1e-4, abs=1e-5)
    assert measured.control.value == pytest.approx(np.mean(control), rel=1e-4, abs=1e-5)
    error = None
    if isinstance(figure, np.ndarray):
        apart = figure - control
        error = np.sqrt(((apart - apart.mean()) ** 2).sum() / (len(apart) - 1) / len(apart))
        assert error > 0
    assert measured.error == (None if error is None else pytest.approx(error, rel=1e-3, abs=1e-6))
    assert (claims()[name].rule.errors is None) == (error is None)
