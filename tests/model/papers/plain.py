"""What claims measure, recomputed by plain loops over single passes: the helpers, and the claims about
attention as an explanation."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from model import Intervention, Trace
from model.analysis.attribution.relevance import weight_gradients
from model.nn.places import Head
from model.papers.explanations import Case, output_without_values
from model.papers.subject import Measured, Subject
from model.papers.texts import Passage, agreeing, passages
from model.trace.records import Token

Values = np.ndarray  # (item,): the quantity is their mean
Both = tuple[Values | float, Values | float]  # figure and control
Tokens = Sequence[Token]


def ended(asked: Subject, tokens: Tokens, **change: object) -> Values:
    """(T, V): the logits of one pass."""
    _, logits = asked.model.passed(tuple(tokens), (), Intervention(**change))  # type: ignore[arg-type]
    return np.array(logits, np.float64)


def losses(asked: Subject, tokens: Tokens, **change: object) -> Values:
    """(T − 1,): in nats, as PyTorch computes them."""
    logits = torch.tensor(ended(asked, tokens, **change)[:-1])
    following = torch.tensor([token.id for token in tokens[1:]])
    return F.cross_entropy(logits, following, reduction="none").numpy()


def chances(logits: Values) -> Values:
    return np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()


def weights_of(asked: Subject, tokens: Tokens, head: Head, **change: object) -> Values:
    trace, _ = asked.model.passed(tuple(tokens), (), Intervention(**change))  # type: ignore[arg-type]
    return trace.find(head[0]).weights(head[1]).astype(np.float64)


# Attention as an explanation


def shuffles(asked: Subject) -> tuple[Values, Values, Values, Values]:
    """How far the output moves, and how far the weights lie apart: of one head, (text, head, order), and of
    all, (text, order). Heads and orders are drawn as in the model's claims."""
    moved, apart, all_moved, all_apart = [], [], [], []
    for seed, passage in enumerate(passages(asked.model)):
        random, trace = np.random.default_rng(seed), asked.trace(passage)
        own = chances(ended(asked, passage.tokens)[-1])
        heads = [asked.heads()[at] for at in random.permutation(len(asked.heads()))[:4]]
        sets = [[head] for head in heads for _ in range(3)] + [list(asked.heads())] * 3
        found = []
        for some in sets:
            cells, far = [], []
            for place, head in some:
                weights = trace.find(place).weights(head).astype(np.float64)
                for query, row in enumerate(weights):
                    other = random.permutation(row[: query + 1])
                    total = max(other.sum(), 1.0)  # rounding
                    cells += [
                        (place, head, query, key, one / total) for key, one in enumerate(other)
                    ]
                    far.append(jensen_shannon(row[: query + 1], other))
            changed = chances(ended(asked, passage.tokens, weights=frozenset(cells))[-1])
            found.append((np.abs(changed - own).sum() / 2, np.mean(far)))
        single, every = np.array(found[:12]).reshape(4, 3, 2), np.array(found[12:])
        moved.append(single[..., 0])
        apart.append(single[..., 1])
        all_moved.append(every[:, 0])
        all_apart.append(every[:, 1])
    return np.array(moved), np.array(apart), np.array(all_moved), np.array(all_apart)


def jensen_shannon(one: Values, other: Values) -> float:
    middle = (one + other) / 2
    halves = [
        sum(a * np.log(a / b) for a, b in zip(row, middle, strict=True) if a > 0)
        for row in (one, other)
    ]
    return sum(halves) / 2


def shuffled_weights(asked: Subject, measured: Measured) -> Both:
    moved, _, all_moved, _ = shuffles(asked)
    assert measured.seeds == moved.size + all_moved.size
    return float(np.median(moved)), float(np.median(all_moved))


def adversarial_weights(asked: Subject, measured: Measured) -> Both:
    moved, apart, all_moved, all_apart = shuffles(asked)
    single, every = (moved <= 0.05) & (apart >= 0.3), (all_moved <= 0.05) & (all_apart >= 0.3)
    return float(single.any(2).mean()), float(every.any(1).mean())


def cases(asked: Subject) -> list[Case]:
    return [Case(asked, one, asked.trace(one)) for one in passages(asked.model)]


def last_rows(asked: Subject, trace: Trace) -> Iterator[tuple[Head, Values]]:
    """(T − 1,): what the last token gives to the others."""
    for place, head in asked.heads():
        yield (place, head), trace.find(place).weights(head)[-1, :-1].astype(np.float64)


def read_until(asked: Subject, passage: Passage, order: Values) -> float:
    """The same share by weights that are set to 0 by hand: the others of their row are renormalised."""
    last, answer = len(passage.tokens) - 1, int(ended(asked, passage.tokens)[-1].argmax())
    ranked = sorted(range(last), key=lambda at: -order[at])
    for count in range(1, last + 1):
        cells = frozenset(
            (place, head, last, key, 0.0) for place, head in asked.heads() for key in ranked[:count]
        )
        if int(ended(asked, passage.tokens, weights=cells)[-1].argmax()) != answer:
            return count / last
    return 1.0


def erasure(asked: Subject, measured: Measured) -> Both:
    figures, controls = [], []
    for passage in passages(asked.model):
        trace = asked.trace(passage)
        answer = int(np.array(trace.logits)[-1].argmax())
        gradients = weight_gradients(asked.model, trace, answer)
        rows = dict(last_rows(asked, trace))
        products = sum(row * gradients[place][head][-1, :-1] for (place, head), row in rows.items())
        figures.append(read_until(asked, passage, products))
        controls.append(read_until(asked, passage, sum(rows.values())))
    return np.array(figures), np.array(controls)


def relevance_propagation(asked: Subject, measured: Measured) -> Both:
    figures, controls = [], []
    for case in cases(asked):
        last = asked.heads()[-1][0]
        rows = [row for (place, _), row in last_rows(asked, case.trace) if place == last]
        figures.append(case.kept_until(case.relevance()))
        controls.append(case.kept_until(np.mean(rows, 0)))
    return np.array(figures), np.array(controls)


def value_zeroing(asked: Subject, measured: Measured) -> Both:
    own, theirs = [], []
    layers = len(asked.model.attention_names)
    for one in agreeing(asked.model)[:12]:
        nouns, row = [one.places["subject"], one.places["other"]], one.places["expects"]
        moved, given = np.zeros(2), np.zeros(2)
        for layer in sorted({round(at * (layers - 1) / 2) for at in range(3)}):
            place = asked.model.attention_names[layer]
            passage = Passage(one.tokens)
            moved += output_without_values(asked, passage, layer, nouns)[:, row]
            heads = [head for head in asked.heads() if head[0] == place]
            given += np.mean([weights_of(asked, one.tokens, head)[row, nouns] for head in heads], 0)
        own.append(moved[0] / moved.sum())
        theirs.append(given[0] / given.sum())
    return np.array(own), np.array(theirs)


def spearman(one: Values, other: Values) -> float:
    return float(pd.Series(one).rank().corr(pd.Series(other).rank()))


def value_norms(asked: Subject, measured: Measured) -> Both:
    own, theirs = [], []
    for case in cases(asked):
        lengths, weights = np.zeros(case.tokens), np.zeros(case.tokens)
        for (place, head), row in last_rows(asked, case.trace):
            value = case.trace.find(place).value[head].astype(np.float64)
            written = value @ asked.model.w_o(place, head).double().numpy().T
            lengths += row * np.linalg.norm(written, axis=1)[:-1]
            weights += row
        own.append(spearman(lengths, case.effects))
        theirs.append(spearman(weights, case.effects))
    return np.array(own), np.array(theirs)


def rollout(asked: Subject, measured: Measured) -> Both:
    own, theirs = [], []
    for case in cases(asked):
        product = np.eye(len(case.trace.tokens))
        for place in asked.model.attention_names:
            heads = [head for head in asked.heads() if head[0] == place]
            mean = np.mean([case.trace.find(place).weights(head) for _, head in heads], 0)
            product = (mean / 2 + np.eye(len(mean)) / 2) @ product
        own.append(spearman(product[-1, :-1], case.effects))
        theirs.append(spearman(mean[-1, :-1], case.effects))
    return np.array(own), np.array(theirs)
