"""Parts of another run put into a pass, as part of its intervention: nothing else changes."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from model import Intervention, Model, Trace
from model.analysis import score_parts
from model.analysis.heads.contributions import ablate_each
from model.code.origin import origin
from model.nn.patches import Patch, PatchKind, PatchPart
from model.nn.places import Place
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import TARGET, TINY, loaded

A, B = "the cat saw the cat on the mat", "a dog saw the lion on a tiger"


def passed(model: Model, ids: tuple[int, ...], intervention: Intervention) -> Trace:
    target = model.tokenizer.named((2, 4) if model.config.shape == "encoder-decoder" else ())
    return model.passed(model.tokenizer.named(ids), target, intervention, record="full")[0]


def every_part(model: Model, trace: Trace, *kinds: PatchKind) -> frozenset[PatchPart]:
    """All that can be put into a run."""
    parts: list[PatchPart] = []
    for attention in trace.attention:
        tokens = range(len(trace.tokens_of(attention.stack)))
        if "head" in kinds:
            parts += [("head", attention.name, head) for head in range(attention.heads)]
        if "weights" in kinds:
            parts += [("weights", attention.name, head) for head in range(attention.heads)]
        if "stream" in kinds and attention.kind != "cross":
            parts += [("stream", attention.name, token) for token in tokens]
    for record in trace.feed_forward if "feed_forward" in kinds else ():
        tokens = range(len(trace.tokens_of(Place.named(record.name).stack)))
        parts += [("feed_forward", record.name, token) for token in tokens]
    return frozenset(parts)


def assert_same(one: Trace, other: Trace) -> None:
    """Bit for bit, and with records that hold together."""
    if one.prediction is not None:
        np.testing.assert_array_equal(one.logits, other.logits)
    for stack, states in one.streams.items():
        np.testing.assert_array_equal(states, other.streams[stack])
    for ours, theirs in zip(one.attention, other.attention, strict=True):
        np.testing.assert_array_equal(ours.output, theirs.output)
        for head in range(ours.heads):
            np.testing.assert_array_equal(ours.weights(head), theirs.weights(head))
    for fed, feeds in zip(one.feed_forward, other.feed_forward, strict=True):
        np.testing.assert_array_equal(fed.hidden, feeds.hidden)
    assert one.check() < 1e-4


def give_the_other_run(model: Model) -> None:
    """Everything put in, or the whole stream before the first layer: both give run B."""
    texts = {name: model.tokenizer.named(ids) for name, ids in (("A", A_IDS), ("B", B_IDS))}
    try:
        model.tokens = texts.__getitem__  # type: ignore[method-assign, assignment]
        a, b = (passed(model, ids, Intervention()) for ids in (A_IDS, B_IDS))
        everything = every_part(model, a, "head", "weights", "stream", "feed_forward")
        for parts in (everything, every_part(model, a, "stream")):
            patched = passed(model, A_IDS, Intervention(patch=Patch(model.name, "B", parts)))
            assert_same(patched, replace(b, intervention=patched.intervention))
            own = passed(model, A_IDS, Intervention(patch=Patch(model.name, "A", parts)))
            assert_same(own, a)
    finally:
        del model.tokens


A_IDS, B_IDS = (2, 3, 4, 2, 5), (2, 6, 3, 2, 5)


@cases("name", TINY)
def test_everything_gives_the_other_run_and_ones_own_parts_change_nothing(name) -> None:
    give_the_other_run(loaded(name))


@pytest.mark.slow
@cases("family", hub_models.FAMILIES)
def test_everything_gives_the_other_run_in_every_family(family) -> None:
    give_the_other_run(hub_models.loaded(family))


@cases("name", ["gpt", "llama", "gpt-post"])
def test_a_head_is_the_other_runs_and_the_rest_is_recomputed(name) -> None:
    model = loaded(name)
    a, b = (model.trace(text) for text in (A, B))
    last = a.attention[-1].name
    patched = model.trace(
        A, intervention=Intervention(patch=Patch(name, B, frozenset({("head", last, 1)})))
    )
    np.testing.assert_array_equal(patched.find(last).output[1], b.find(last).output[1])
    np.testing.assert_array_equal(patched.find(last).output[0], a.find(last).output[0])
    assert not np.array_equal(patched.logits, a.logits)
    weighed = model.trace(
        A, intervention=Intervention(patch=Patch(name, B, frozenset({("weights", last, 1)})))
    ).find(last)
    np.testing.assert_array_equal(weighed.weights(1), b.find(last).weights(1))
    np.testing.assert_array_equal(weighed.value, a.find(last).value)
    np.testing.assert_allclose(
        weighed.output[1], b.find(last).weights(1) @ a.find(last).value[1], atol=1e-5
    )


def test_the_other_run_has_the_same_further_changes() -> None:
    model = loaded("gpt")
    changes = Intervention(mask="none", scale=0.7, hidden=frozenset({2}))
    a, b = (model.trace(text, intervention=changes) for text in (A, B))
    parts = every_part(model, model.trace(A, record="full"), "stream")
    patched = model.trace(A, intervention=replace(changes, patch=Patch("gpt", B, parts)))
    np.testing.assert_array_equal(patched.logits, b.logits)
    assert not np.array_equal(a.logits, b.logits)


def test_a_translators_other_run_reads_the_same_target() -> None:
    model = loaded("translator")
    parts = every_part(model, model.trace(A, TARGET, record="full"), "stream", "head")
    patched = model.trace(A, TARGET, Intervention(patch=Patch("translator", B, parts)))
    np.testing.assert_array_equal(patched.logits, model.trace(B, TARGET).logits)


def test_what_cannot_be_put_in_is_refused_in_a_sentence() -> None:
    model = loaded("gpt")

    def run(text: str, *parts: PatchPart, of: str = "gpt") -> None:
        model.trace(A, intervention=Intervention(patch=Patch(of, text, frozenset(parts))))

    head: PatchPart = ("head", "decoder.0.self", 0)
    with pytest.raises(ValueError, match="8 tokens and the other 2: each part"):
        run("the cat", head)
    with pytest.raises(ValueError, match="A run of llama has no parts that gpt could take"):
        run(B, head, of="llama")
    with pytest.raises(ValueError, match=r"no attention sub-layer 'decoder\.7\.self'"):
        run(B, ("head", "decoder.7.self", 0))
    with pytest.raises(ValueError, match="heads 0 to 2, not 3"):
        run(B, ("weights", "decoder.0.self", 3))
    with pytest.raises(ValueError, match="no token 8"):
        run(B, ("stream", "decoder.0.self", 8))
    with pytest.raises(ValueError, match=r"no feed-forward 'decoder\.5\.feed_forward'"):
        run(B, ("feed_forward", "decoder.5.feed_forward", 0))
    for wrong in (("limb", "decoder.0.self", 0), ("head", "decoder.0.feed_forward", 0), "x", 5):
        with pytest.raises(ValueError, match="each part is a kind"):
            Patch("gpt", B, frozenset({wrong}))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs the sentence"):
        Patch("gpt", " ", frozenset({head}))
    with pytest.raises(ValueError, match="needs a part"):
        Patch("gpt", B, frozenset())
    patched = Intervention(patch=Patch("gpt", B, frozenset({head})))
    trace = model.trace(A, intervention=patched)
    with pytest.raises(ValueError, match=r"put in by `Model\.trace` alone"):
        next(ablate_each(model, trace, (), nullcontext))
    assert "another sentence" in origin(model, trace, trace.attention[0]).refusal
    assert not origin(model, trace, trace.attention[1]).refusal
    stream = Patch("gpt", B, frozenset({("stream", "decoder.1.self", 3)}))
    moved = model.trace(A, intervention=Intervention(patch=stream))
    with pytest.raises(ValueError, match="is not the sum of what its layers wrote"):
        score_parts(model, moved, "decoder.1.self", 0, 4, 1)
    with pytest.raises(ValueError, match="cannot be continued"):
        model.generate(A, intervention=patched)
