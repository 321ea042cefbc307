"""The parts of a score add up to the score that the model computed, in every head of every model."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from model import Attention, Intervention, Model, Trace
from model.analysis import score_parts
from model.analysis.attribution.score_parts import ScoreParts
from model.analysis.heads.contributions import head_results
from model.nn.attention import rotate
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import build, loaded, run

Cell = tuple[Attention, int, int, int]  # head, query, key
EXACT = 1e-4  # of the largest score in the row
TOM = "Tom Hill saw a red ball. Anna gave the ball to Tom"


def cells(trace: Trace) -> Iterator[Cell]:
    """One cell of every head of every sub-layer: head after head another one of the allowed keys."""
    for attention in trace.attention:
        for head in range(attention.heads):
            scores, mask = attention.scores(head), attention.mask_of(head)
            query = len(scores) - 1 - head % 2
            allowed = np.arange(scores.shape[1]) if mask is None else np.flatnonzero(mask[query])
            yield attention, head, query, int(allowed[(head * 3 + 1) % len(allowed)])


def apart(trace: Trace, parts: ScoreParts, name: str, head: int, query: int) -> float:
    """|sum of the parts - recorded score|, as a share of the largest score in the row."""
    row = np.abs(trace.find(name).scores(head)[query]).max()
    return abs(parts.total - parts.recorded) / float(row)


def hold_everywhere(model: Model, trace: Trace) -> None:
    hold(model, trace, cells(trace))


def hold(model: Model, trace: Trace, these: Iterable[Cell]) -> None:
    for attention, head, query, key in these:
        parts = score_parts(model, trace, attention.name, head, query, key)
        # One row of a product may be summed in another order than the whole of it.
        scores = attention.scores(head)
        assert abs(parts.recorded - scores[query, key]) < EXACT * max(1.0, np.abs(scores).max())
        assert apart(trace, parts, attention.name, head, query) < EXACT, (attention.name, head)
        allowed = attention.mask_of(head)
        row = attention.scores(head)[query][slice(None) if allowed is None else allowed[query]]
        above = parts.recorded - row.mean(dtype=np.float64)
        assert abs(parts.above_mean.sum() - above) < EXACT * np.abs(row).max()


def test_the_parts_of_a_score_add_up_in_every_head(model: Model, trace: Trace) -> None:
    hold_everywhere(model, trace)


# Layers that turn their vectors by tables of their own; norms over all heads at once.
REFUSED = {"gemma3": "rotates", "modernbert": "rotates", "olmo2": "no map"}


@pytest.mark.slow
@cases("family", hub_models.FAMILIES)
def test_the_parts_of_a_score_add_up_in_every_family_of_the_hub(family) -> None:
    model = hub_models.loaded(family)
    trace = hub_models.traced(model)
    if family in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[family]):
            hold_everywhere(model, trace)
    else:
        hold_everywhere(model, trace)


@cases(
    "intervention, name",
    product(
        [
            Intervention(positions=False),
            Intervention(scale=1.0, mask="none"),
            Intervention(ablated=frozenset({("decoder.0.self", 1)})),
        ],
        ["gpt", "llama", "gpt-post", "translator-rotary"],
    ),
)
def test_the_parts_add_up_in_a_changed_pass(intervention, name) -> None:
    hold_everywhere(loaded(name), run(loaded(name), intervention))


def test_the_score_that_finds_the_surname_is_an_induction_circuit() -> None:
    model = loaded("house-gpt")
    trace = model.trace(TOM)
    texts = [token.text.strip() for token in trace.tokens]
    last, hill = len(texts) - 1, texts.index("Hill")
    assert texts[last] == "Tom"
    parts = score_parts(model, trace, "decoder.1.self", head=7, query=last, key=hill)
    assert parts.total == pytest.approx(42.519524, abs=2e-5)
    assert parts.recorded == pytest.approx(42.519530, abs=2e-5)
    order = np.argsort(-parts.values, axis=None)[:2]
    largest = [
        (parts.query_parts[q], parts.key_parts[k], round(float(parts.values[q, k]), 2))
        for q, k in np.transpose(np.unravel_index(order, parts.values.shape))
    ]
    assert largest == [
        ("decoder.0.self.1", "decoder.0.self.2", 16.99),
        ("decoder.0.self.1", "decoder.0.self.5", 12.49),
    ]


def test_parts_carry_the_names_of_what_wrote() -> None:
    model = loaded("translator")
    parts = score_parts(model, run(model), "decoder.1.cross", head=0, query=2, key=1)
    own = [f"decoder.0.{kind}.{head}" for kind in ("self", "cross") for head in range(3)]
    assert parts.query_parts == (
        *("token", "position"),
        *own,
        "decoder.0.feed_forward",
        *(f"decoder.1.self.{head}" for head in range(3)),
        "bias",
    )
    heads = [f"encoder.0.self.{head}" for head in range(3)]
    assert parts.key_parts == ("token", "position", *heads, "encoder.0.feed_forward", "bias")
    bare = loaded("attention-only")  # the norms have a β, so there is a bias; no position is added
    assert score_parts(bare, run(bare), "decoder.0.self", 0, 1, 0).key_parts == ("token", "bias")


@cases("name", ["gpt", "llama"])
def test_a_part_is_what_its_vector_alone_makes(name) -> None:
    """Worked out forwards: one head's vector through the norm, the map and the turn."""
    model = loaded(name)
    trace = run(model)
    query, key, head = 5, 2, 1
    parts = score_parts(model, trace, "decoder.1.self", head, query, key)
    norm = next(norm for norm in trace.norms if norm.name == "decoder.1.self.norm")
    written = head_results(model, trace.find("decoder.0.self"))[2]  # (token, d_model)
    centred = written - written.mean(-1, keepdims=True) * (norm.kind == "layer")
    normed = torch.tensor(centred * norm.inverse_deviation[:, None] * norm.gamma)
    attention = model.module.attentions()[1]
    angles = model.module.embedding.angles(len(trace.tokens), torch.device("cpu"))
    vectors = []
    for layer in (attention.query, attention.key):
        mapped = (normed @ layer.weight.T).view(1, len(normed), 3, -1).transpose(1, 2)
        vectors.append(mapped if angles is None else rotate(mapped, angles))
    expected = float(vectors[0][0, head, query] @ vectors[1][0, head, key])
    at = (parts.query_parts.index("decoder.0.self.2"), parts.key_parts.index("decoder.0.self.2"))
    assert parts.values[at] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@cases("name", ["gpt", "llama", "gpt-post", "bert", "translator"])
def test_a_head_that_is_left_out_is_seen_in_the_sum(name) -> None:
    model = loaded(name)
    trace = run(model)
    last = trace.attention[-1]
    at = max(0, len(trace.attention) - 2)
    lost = replace(trace.attention[at], ablated=(1,))
    wrong = replace(trace, attention=(*trace.attention[:at], lost, *trace.attention[at + 1 :]))
    parts = score_parts(model, wrong, last.name, 0, 3, 2)
    assert apart(wrong, parts, last.name, 0, 3) > 20 * EXACT


def test_vectors_that_no_map_of_the_model_makes_are_refused() -> None:
    model = loaded("gpt")
    trace = run(model)
    first, second = trace.attention
    query, key, value = second.vectors
    stranger = replace(second, vectors=(query * np.float32(1.01), key, value))
    wrong = replace(trace, attention=(first, stranger))
    with pytest.raises(ValueError, match=r"no map of gpt reproduces the recorded ones"):
        score_parts(model, wrong, "decoder.1.self", 0, 3, 2)


def test_a_row_that_may_look_at_nothing_is_measured_from_zero() -> None:
    model = build("bert")
    trace = run(model, Intervention(hidden=frozenset(range(len(run(model).tokens)))))
    parts = score_parts(model, trace, "encoder.1.self", 0, 1, 2)
    np.testing.assert_array_equal(parts.above_mean, parts.values)


@cases("cell, sentence_", [
    (("decoder.7.self", 0, 0, 0), "no attention sub-layer"),
    (("decoder.0.self", 3, 0, 0), "heads 0 to 2, not 3"),
    (("decoder.0.self", 0, 99, 0), "queries 0 to 7, not 99"),
    (("decoder.0.self", 0, 0, -9), "keys 0 to 7, not -9"),
])  # fmt: skip
def test_what_is_not_there_is_refused(cell, sentence_) -> None:
    model = loaded("gpt")
    with pytest.raises(ValueError, match=sentence_):
        score_parts(model, run(model), *cell)


def test_a_trace_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="of llama, not of gpt"):
        score_parts(loaded("gpt"), run(loaded("llama")), "decoder.0.self", 0, 0, 0)


def test_a_pass_whose_embedding_is_recomputed_when_asked_for_is_taken_apart_too() -> None:
    model = loaded("gpt")
    trace, _ = model.passed(run(model).tokens, deferred=True)
    hold_everywhere(model, trace)
