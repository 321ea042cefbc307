"""The key–value cache while a model writes: its bytes, the scores it saves, and why it may be kept."""

import dataclasses
from itertools import pairwise

import pytest

from model import Model, Trace
from model.analysis.cost.cost import apart, key_value_cache, keys_there, windows_of, writing_steps
from model.analysis.cost.operations import lengths_of
from model.analysis.tokens.live_writing import Choice, live_writing
from model.analysis.tokens.prediction import Sampling
from model.nn.intervention import Intervention
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import SENTENCE, loaded, of_shape, sentence

STEPS = 3


def passes(model: Model, text: str, changed: Intervention | None = None) -> list[Trace]:
    """The first steps of writing, a pass for each over the whole text."""
    target = "" if model.config.shape == "encoder-decoder" else None
    ids = tuple(token.id for token in model.generate(text, limit=2))
    ids = (ids * STEPS)[: STEPS - 1]  # a model may end its text sooner
    return [
        model.trace(text, target, changed or Intervention(), continued=ids[:written])
        for written in range(STEPS)
    ]


def check(model: Model, text: str) -> None:
    traces, config = passes(model, text), model.config
    read = [[one for one in trace.attention if one.stack == "decoder"] for trace in traces]
    source = len(traces[0].tokens) if config.shape == "encoder-decoder" else 0
    windows = windows_of(traces[-1])
    steps = writing_steps(config, windows, len(traces[0].tokens_of("decoder")), STEPS, source)
    before = 0
    for step, trace, layers in zip(steps, traces, read, strict=True):
        tables = [one.scores(head) for one in layers for head in range(one.heads)]
        assert step.uncached == sum(table.size for table in tables)
        assert step.cached == sum(table[before:].size for table in tables)
        assert (step.tokens, step.kept) == (len(trace.tokens_of("decoder")), before)
        before = step.tokens
        held = [array for one in layers for array in one.vectors[1:]]
        assert sum(array.size for array in held) == key_value_cache(config, lengths_of(trace))
        assert {array.shape[0] for array in held} == {config.key_head_count}
    for shorter, longer in pairwise(traces):
        found = apart(shorter, longer)
        assert found.agree
        assert found.difference < 1e-5 * found.largest
        assert found.numbers == key_value_cache(config, lengths_of(shorter))


@cases("name", of_shape("decoder", "encoder-decoder"))
def test_what_is_kept_is_what_each_longer_pass_computes_again(name) -> None:
    check(loaded(name), sentence(loaded(name)))


def test_grouped_keys_are_kept_once() -> None:
    model = hub_models.loaded("llama")  # six heads of queries share two of keys
    check(model, hub_models.TEXT)
    (trace, *_), tokens = passes(model, hub_models.TEXT), len(hub_models.TEXT.split())
    assert key_value_cache(model.config, lengths_of(trace)) == 2 * 3 * 2 * 8 * tokens


@cases("family", ["mistral", "gemma2"])
def test_the_keys_of_a_step_are_those_that_the_cache_of_the_model_holds_for_it(family) -> None:
    """Layers with a sliding window drop what their next token cannot read."""
    model = hub_models.loaded(family)
    tokens = model.tokens(hub_models.TEXT)
    steps = list(live_writing(model, tokens, Choice(Sampling()), steps=4))[-1].steps
    ids = tuple(step.id for step in steps[:-1])
    windows = windows_of(model.trace(hub_models.TEXT, continued=ids))
    assert any(window is not None and window < steps[-1].read for window in windows)
    for before, step in pairwise(steps):
        held = [one.tokens + step.new for one in before.kept.values()]
        assert keys_there(windows, step.read).sum(1).tolist() == held


def test_without_the_look_ahead_mask_nothing_may_be_kept() -> None:
    """Earlier tokens then attend to later ones, so their keys change with each new token."""
    shorter, *_, longer = passes(loaded("gpt"), SENTENCE, Intervention(mask="none"))
    found = apart(shorter, longer)
    assert not found.agree
    assert found.difference > 0.1


def test_texts_of_which_one_does_not_begin_the_other_are_refused() -> None:
    shorter, longer, _ = passes(loaded("gpt"), SENTENCE)
    other = dataclasses.replace(shorter, tokens=shorter.tokens[::-1])
    for pair in ((longer, shorter), (other, longer)):
        with pytest.raises(ValueError, match="does not begin with"):
            apart(*pair)
