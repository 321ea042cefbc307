"""The key–value cache: token by token the logits are those of one pass over the whole text, and what is kept
and dropped is what the rule says."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from model import Intervention, Model, load_model
from model.analysis.tokens.live_writing import Choice, live_writing
from model.analysis.tokens.prediction import Sampling
from model.nn.key_value_cache import Eviction, KeyValueCache
from model.nn.masks import causal_mask
from model.nn.recorder import Recorder, recording
from tests.cases import cases
from tests.model import hub_models
from tests.model.hub_families import FAMILIES
from tests.model.tiny import loaded, of_shape, sentence

OWN = of_shape("decoder", "encoder-decoder")
HUB = ("gpt2", "llama", "mistral", "qwen3", "opt", "phi", "bart", "marian")
MODERN = (
    "gpt_oss",
    "deepseek_v3",
    "gemma3",
)  # two kinds of layers; values with a width of their own
EVICTIONS = (Eviction(), Eviction(3), Eviction(3, first=1), Eviction(1), Eviction(64, first=4))
STAGES = {"all-stages": "cat " * 9, "distance-buckets": "the cat sees the dog"}  # a window; biases


def opened(name: str) -> tuple[Model, str]:
    if name in STAGES:
        return load_model(name), STAGES[name]
    if name in HUB + MODERN:
        return hub_models.loaded(name), hub_models.TEXT
    return loaded(name), sentence(loaded(name))


def passed(model: Model, text: str, read: Sequence[int], recorder: Recorder) -> Tensor:
    """(T, V): the logits of the decoder's tokens."""
    ids = torch.tensor([list(read)])
    fed = [model.ids(model.tokens(text)), ids] if both(model) else [ids]
    with recording(recorder), torch.inference_mode():
        logits: Tensor = model.module(*fed)[0]
    return logits


def both(model: Model) -> bool:
    return model.config.shape == "encoder-decoder"


def written(
    model: Model, text: str, eviction: Eviction, steps: int = 5
) -> tuple[list[int], Tensor, KeyValueCache]:
    """The ids that were read, the logits after each step, and the cache."""
    new = [model.tokenizer.start or 0] if both(model) else [one.id for one in model.tokens(text)]
    cache, read, found = model.module.new_cache(eviction), list(new), []
    for _ in range(steps):
        recorder = Recorder(source=model.config.source, cache=cache)
        found.append(passed(model, text, new, recorder)[-1])
        new = [int(found[-1].argmax())]
        read += new
    return read[:-1], torch.stack(found), cache


def read_whole(model: Model, text: str, read: Sequence[int], eviction: Eviction) -> Tensor:
    """One pass in which every edge that the eviction takes away is cut."""
    cut = frozenset(
        (query, key)
        for query in range(len(read))
        for key in range(query + 1)
        if eviction.window and not (key < eviction.first or key > query - eviction.window)
    )
    only = frozenset(name for name in model.attention_names if name.startswith("decoder"))
    own = frozenset(name for name in only if name.endswith("self"))
    changed = Intervention(blocked=cut, only=own)
    return passed(model, text, read, Recorder(changed, source=model.config.source))


@cases("name", [*OWN, *HUB, *MODERN, *STAGES])
def test_each_step_gives_the_logits_of_a_pass_over_all_that_was_read(name) -> None:
    """With everything kept, and with what an eviction leaves."""
    model, text = opened(name)
    for eviction in EVICTIONS:
        read, found, _ = written(model, text, eviction)
        whole = read_whole(model, text, read, eviction)[-len(found) :]
        assert (found - whole).abs().max() <= 1e-5 * whole.abs().max().clamp(min=1.0), eviction


@cases("name", [*OWN, *HUB])
def test_what_can_be_read_no_more_is_dropped_and_all_else_is_kept(name) -> None:
    model, text = opened(name)
    own = 4 if name == "mistral" else None  # its own sliding window
    for eviction in EVICTIONS:
        read, _, cache = written(model, text, eviction)
        assert cache.read == len(read)
        stays = [
            at
            for at in range(len(read))
            if eviction.window is None or at < eviction.first or at > len(read) - eviction.window
            if own is None or at > len(read) - own
        ]
        kept = cache.kept
        assert {one for one in model.attention_names if one.startswith("decoder")} == kept.keys()
        for sublayer, one in kept.items():
            source = len(model.tokens(text))
            expected = list(range(source)) if sublayer.endswith("cross") else stays
            assert one.positions.tolist() == expected
            assert one.key.shape[1] == model.config.key_head_count
            assert one.key.shape[2] == one.value.shape[2] == len(expected)
            assert one.nbytes == 2 * 4 * one.key.numel()


def test_the_look_ahead_mask_of_later_queries_ends_at_their_own_keys() -> None:
    assert causal_mask(2, 4).tolist() == [[True, True, True, False], [True] * 4]
    assert torch.equal(causal_mask(3), torch.ones(3, 3).tril().bool())
    model, text = opened("gpt")
    ids = [one.id for one in model.tokens(text)]
    cache = model.module.new_cache()
    halves = [passed(model, text, half, Recorder(cache=cache)) for half in (ids[:3], ids[3:])]
    whole = passed(model, text, ids, Recorder())
    assert (torch.cat(halves) - whole).abs().max() < 1e-5


def test_keys_are_dropped_only_where_no_bias_counts_the_distance_to_them() -> None:
    """The library counts it among the keys that are kept; our own layers by their positions."""
    model = hub_models.loaded("t5")
    read, found, _ = written(model, hub_models.TEXT, Eviction())
    whole = read_whole(model, hub_models.TEXT, read, Eviction())[-len(found) :]
    assert (found - whole).abs().max() < 1e-5
    with pytest.raises(ValueError, match="no key can be dropped"):
        written(model, hub_models.TEXT, Eviction(2))
    assert opened("distance-buckets")[0].config.positions == "buckets"


def test_a_window_without_tokens_and_two_tokens_after_a_drop_are_refused() -> None:
    for window, first in ((0, 0), (-1, 0), (3, -1)):
        with pytest.raises(ValueError, match=r"holds none|cannot be kept"):
            Eviction(window, first)
    model, text = opened("gpt")
    cache = written(model, text, Eviction(2))[2]
    with pytest.raises(ValueError, match="one new token at a time"):
        passed(model, text, [1, 2], Recorder(cache=cache))


def test_a_text_grows_as_the_library_writes_it_where_its_cache_begins_anew(tmp_path: Path) -> None:
    """Phi-3 turns all keys anew once a text is longer than those that it was first trained on."""
    factors = {"short_factor": [1.0] * 4, "long_factor": [2.0, 4.0, 8.0, 16.0]}
    choices = {
        **FAMILIES["phi3"][2],
        "original_max_position_embeddings": 13,
        "rope_scaling": {"type": "longrope", "rope_theta": 10_000.0, **factors},
    }
    body = hub_models.build("Phi3ForCausalLM", "Phi3Config", choices)
    body.lm_head.weight.data *= 9  # so that it writes more than one word over and over
    model = load_model(str(hub_models.save(tmp_path, body, adds=False)), device="cpu")
    tokens = model.tokens(hub_models.TEXT)
    theirs = body.generate(model.ids(tokens), max_new_tokens=8, do_sample=False)[0, len(tokens) :]
    *_, last = live_writing(model, tokens, Choice(Sampling()), steps=8, compared=True)
    assert list(last.ids) == theirs.tolist()
    assert max(step.apart or 0.0 for step in last.steps) < 1e-4
    assert [step.new for step in last.steps] == [11, 1, 1, 14, 1, 1, 1, 1]
    shorter = Eviction(6, first=1)
    *_, last = live_writing(model, tokens, Choice(Sampling()), steps=8, eviction=shorter)
    assert [step.new for step in last.steps] == [11, 1, 1, 14, 1, 1, 1, 1]
    assert {kept.tokens for step in last.steps for kept in step.kept.values()} == {6}
