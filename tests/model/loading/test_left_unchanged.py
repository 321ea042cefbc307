"""A model that somebody has loaded stays exactly as it was, also after an error and among threads."""

import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from model import Trace
from model.loading.in_memory import opened, trace
from tests.cases import cases
from tests.model.hub_models import TEXT, loaded, traced
from tests.model.loading.loaded_models import differences, logits, own, snapshot, target_of


@cases("family, implementation", [
    ("llama", "sdpa"),
    ("llama", "eager"),
    ("bert", "sdpa"),
    ("t5", "eager"),
    ("bloom", "eager"),
    ("falcon", "sdpa"),
])  # fmt: skip
def test_the_model_stays_as_it_was(family, implementation) -> None:
    model, tokenizer = own(family, attn_implementation=implementation)
    fed = {"decoder_input_ids": torch.tensor([[0, 4, 5]])} if family == "t5" else {}
    seen: list[object] = []
    next(model.parameters()).requires_grad_(False)
    some_map = next(part for part in model.modules() if isinstance(part, torch.nn.Linear))
    some_map.register_forward_hook(lambda *given: seen.append(given))
    model.train()
    expected, before = logits(model.eval(), **fed), snapshot(model.train())
    trace(model, tokenizer, TEXT, target=target_of(family), record="full", explicit=True)
    assert seen, "its own hooks run"
    assert {name for name, value in snapshot(model).items() if before[name] != value} == set()
    assert before.keys() == snapshot(model).keys()
    assert torch.equal(logits(model.eval(), **fed), expected)


def test_no_weight_is_copied() -> None:
    model, tokenizer = own("llama")
    made = opened(model, tokenizer)
    own_places = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    places = {weight.untyped_storage().data_ptr() for weight in made.module.parameters()}
    assert places == own_places
    assert not any(weight.requires_grad for weight in made.module.parameters())


def test_weights_changed_in_place_stay_changed_and_are_shown(tmp_path: Path) -> None:
    """Weights in half precision may be pages of their file, which the system would read again."""
    torch.manual_seed(0)
    wide = {"vocab_size": 4096, "hidden_size": 64, "intermediate_size": 64}  # pages of their own
    heads = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    made = LlamaForCausalLM(LlamaConfig(**wide, **heads)).to(torch.bfloat16)
    made.save_pretrained(tmp_path)
    model = LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    trace(model, None, [4, 5, 6, 7, 4, 8])
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    changed = [weight.clone() for weight in model.parameters()]
    found = trace(model, None, [4, 5, 6, 7, 4, 8])
    assert all(map(torch.equal, model.parameters(), changed))
    plain = trace(made, None, [4, 5, 6, 7, 4, 8])
    assert np.abs(found.logits - plain.logits).max() > 0.01
    with torch.no_grad():
        given = model.eval()(torch.tensor([[4, 5, 6, 7, 4, 8]])).logits[0].float().numpy()
    assert np.abs(found.logits - given).max() < 0.05


def test_an_error_leaves_it_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = own("llama")
    before = snapshot(model)
    with pytest.raises(ValueError, match="tokens long"):
        trace(model, tokenizer, "the cat " * 100)
    monkeypatch.setattr("model.hub.proving.config_of", lambda *given: 1 / 0)
    other, _ = own("llama")
    before_other = snapshot(other)
    with pytest.raises(ZeroDivisionError):
        trace(other, tokenizer, TEXT)
    assert snapshot(model) == before
    assert snapshot(other) == before_other


def test_threads_do_not_disturb_each_other() -> None:
    model, tokenizer = own("llama")
    before, expected = snapshot(model), traced(loaded("llama"))
    texts = [TEXT, "the dog saw the cat", "the lion kills the tiger", TEXT]
    found: dict[int, Trace] = {}

    def read(number: int) -> None:
        found[number] = trace(model, tokenizer, texts[number])

    threads = [threading.Thread(target=read, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert snapshot(model) == before
    assert [found[number].text for number in range(len(texts))] == texts
    for number in (0, 3):
        assert set(differences(found[number], expected).values()) == {0.0}


def test_it_is_forgotten_with_the_model() -> None:
    model, tokenizer = own("llama")
    made = opened(model, tokenizer)
    gone, twin_gone = weakref.ref(model), weakref.ref(made.module)
    del model, made
    gc.collect()
    assert gone() is None
    gc.collect()
    assert twin_gone() is None
