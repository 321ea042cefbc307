"""A model that somebody has loaded is shown as its files would be: of any head, class and precision."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from model import load_model
from model.hub.library import OLDEST, missing_library
from model.loading.in_memory import opened, trace
from tests.cases import cases
from tests.model.hub_models import TARGET, TEXT, loaded, saved, traced
from tests.model.loading.loaded_models import differences, own, snapshot, target_of

SHOWN = (
    "gpt2", "bert", "distilbert", "llama", "qwen2", "gemma3", "gpt_neox", "bloom", "falcon", "bart",
    "t5",
)  # fmt: skip


@cases("family", SHOWN)
def test_it_is_shown_as_its_files_are(family) -> None:
    model, tokenizer = own(family)
    found = trace(model, tokenizer, TEXT, target=target_of(family))
    expected = traced(loaded(family))
    assert found.tokens == expected.tokens
    assert found.unproven == expected.unproven
    worst = {name: gap for name, gap in differences(found, expected).items() if gap}
    assert worst == {}


def test_it_is_proven_once_and_again_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = own("llama")
    first = opened(model, tokenizer)
    assert opened(model, tokenizer) is first
    before = first.trace(TEXT).logits
    with torch.no_grad():
        model.model.layers[0].self_attn.q_proj.weight.mul_(1.5)
    assert opened(model, tokenizer) is not first
    changed = trace(model, tokenizer, TEXT)
    assert np.abs(changed.logits - before).max() > 1e-3
    with torch.no_grad():
        ids = torch.tensor([[token.id for token in changed.tokens]])
        own_logits = model.eval()(ids).logits[0].numpy()
    assert np.abs(changed.logits - own_logits).max() < 1e-5


@cases("changed", ["scaling", "eps", "forward"])
def test_it_is_proven_again_after_a_part_was_changed(changed) -> None:
    model, tokenizer = own("llama")
    before = opened(model, tokenizer).trace(TEXT)
    layer = model.model.layers[0]
    match changed:
        case "scaling":
            layer.self_attn.scaling *= 2
        case "eps":
            layer.input_layernorm.variance_epsilon = 0.5
        case "forward":
            layer.mlp.forward = lambda x: 2 * x
    found = trace(model, tokenizer, TEXT)
    assert np.abs(found.logits - before.logits).max() > 1e-3
    ids = torch.tensor([[token.id for token in found.tokens]])
    with torch.no_grad():
        given = model.eval()(ids).logits[0].numpy()
    assert np.abs(found.logits - given).max() < 1e-5


def test_a_list_of_no_tokens_that_end_a_text_is_none() -> None:
    model, tokenizer = own("llama")
    model.config.eos_token_id = model.generation_config.eos_token_id = []
    expected = trace(own("llama")[0], tokenizer, TEXT)
    assert set(differences(trace(model, tokenizer, TEXT), expected).values()) == {0.0}


def test_a_hook_that_changes_the_model_is_part_of_it() -> None:
    model, tokenizer = own("llama")
    plain = trace(model, tokenizer, TEXT)
    handle = model.model.layers[1].register_forward_hook(lambda module, read, gave: gave * 1.1)
    steered = trace(model, tokenizer, TEXT)
    assert "stream" in steered.unproven or not np.array_equal(
        steered.residual["decoder"][-1], plain.residual["decoder"][-1]
    )
    handle.remove()
    assert set(differences(trace(model, tokenizer, TEXT), plain).values()) == {0.0}


@cases("precision", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_are_shown_in_their_own(precision) -> None:
    model, tokenizer = own("llama", dtype=precision)
    before = snapshot(model)
    found = trace(model, tokenizer, TEXT)
    assert found.device.endswith(str(precision).removeprefix("torch."))
    assert snapshot(model) == before
    ids = torch.tensor([[token.id for token in found.tokens]])
    with torch.no_grad():
        exact = model.double()(ids).logits[0].numpy()
    assert np.abs(found.logits - exact).max() < 0.2


def test_without_a_tokenizer_ids_are_read() -> None:
    model, tokenizer = own("llama")
    ids = [4, 5, 6, 7, 4, 8]
    found = trace(model, None, ids)
    assert [token.id for token in found.tokens] == ids
    assert [token.text for token in found.tokens] == list(map(str, ids))
    named = trace(model, tokenizer, torch.tensor([ids]))
    assert [token.text for token in named.tokens] == ["the", "cat", "saw", "dog", "the", ","]
    assert set(differences(found, named).values()) == {0.0}


def test_what_is_no_row_of_ids_is_refused(subtests: pytest.Subtests) -> None:
    for ids, sentence in [
        ([[4, 5], [5, 4]], "One text"),
        ([4, 99], "none has the id 99"),
        ([], "no ids"),
        ("a b", "without a tokenizer"),
        ([0.5], "One text"),
        (["the cat", "the dog"], "One text is read at a time, .* not list"),
        ([[4, 5], [4]], "One text is read at a time, .* not list"),
        (transformers.BatchEncoding({"input_ids": [[4, 5]]}), r'BatchEncoding; .*\["input_ids"\]'),
    ]:
        with subtests.test(ids=ids, sentence=sentence), pytest.raises(ValueError, match=sentence):
            trace(own("llama")[0], None, ids)


def test_an_id_below_zero_is_refused_with_its_reason() -> None:
    model, tokenizer = own("llama")
    for reads in (tokenizer, None):
        with pytest.raises(ValueError, match="none has the id -100"):
            trace(model, reads, [4, -100, 5])


@cases("kind, family, names", [
    ("BertForMaskedLM", "bert", "encoder.0.self"),
    ("BertForSequenceClassification", "bert", "encoder.0.self"),
    ("GPT2Model", "gpt2", "decoder.0.self"),
    ("LlamaForSequenceClassification", "llama", "decoder.0.self"),
    ("T5EncoderModel", "t5", "encoder.0.self"),
    ("T5Model", "t5", "encoder.0.self"),
])  # fmt: skip
def test_heads_of_any_kind_are_left_aside(kind, family, names) -> None:
    model = getattr(transformers, kind).from_pretrained(saved(family))
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved(family))
    found = trace(model, tokenizer, TEXT, target=TARGET if kind == "T5Model" else None)
    assert found.attention[0].name == names
    if "decoder" in found.stacks:
        assert "AutoModel" in found.unproven["logits"]
    expected = traced(loaded(family))
    assert np.array_equal(found.attention[0].query, expected.attention[0].query)


def test_a_model_without_an_output_matrix_writes_nothing() -> None:
    model = transformers.T5Model.from_pretrained(saved("t5"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved("t5"))
    with pytest.raises(ValueError, match="runs as T5Model, which has no matrix"):
        trace(model, tokenizer, TEXT)


class Own(transformers.LlamaForCausalLM):
    """A class as somebody writes it in a notebook: it has no file."""


Own.__module__ = "__main__"


class LowRank(torch.nn.Module):
    """A map with a change of low rank beside it, as adapters put it into a model."""

    def __init__(self, base: torch.nn.Linear) -> None:
        super().__init__()
        self.base_layer = base
        self.down = torch.nn.Linear(base.in_features, 2, bias=False)
        self.up = torch.nn.Linear(2, base.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base_layer(x) + self.up(self.down(x))


class Adapted(torch.nn.Module):
    """What an adapter library puts around a model."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.inner = model

    def get_base_model(self) -> Any:
        return self.inner


def test_a_class_of_ones_own_with_adapters_is_shown_with_them() -> None:
    model, tokenizer = Own.from_pretrained(saved("llama")), own("llama")[1]
    for layer in model.model.layers:
        layer.self_attn.q_proj = LowRank(layer.self_attn.q_proj)
    found = trace(Adapted(model), tokenizer, TEXT)
    ids = torch.tensor([[token.id for token in found.tokens]])
    with torch.no_grad():
        given = model.eval()(ids).logits[0].numpy()
    assert np.abs(found.logits - given).max() < 1e-5
    assert not np.allclose(found.attention[0].query, traced(loaded("llama")).attention[0].query)


class Prompted(Adapted):
    """Prompt tuning: vectors of its own stand before those of the text."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.prompt = torch.nn.Parameter(torch.randn(1, 3, 48))

    def forward(self, input_ids: torch.Tensor) -> Any:
        vectors = self.inner.get_input_embeddings()(input_ids)
        return self.inner(inputs_embeds=torch.cat([self.prompt, vectors], 1))


class Scaled(torch.nn.Module):
    """A wrapper of one's own, in training, which may change what it is given."""

    def __init__(self, model: Any, factor: float) -> None:
        super().__init__()
        self.module, self.factor = model, factor
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, input_ids: torch.Tensor) -> Any:
        return self.dropout(self.factor * self.module(input_ids=input_ids).logits)


def test_what_a_wrapper_adds_is_never_dropped() -> None:
    tokenizer = own("llama")[1]
    for around in (Prompted(own("llama")[0]), Scaled(own("llama")[0], 2.0)):
        with pytest.raises(ValueError, match="other numbers than the model inside"):
            trace(around, tokenizer, TEXT)
    for wrapped in (Scaled(own("llama")[0], 1.0), torch.nn.DataParallel(own("llama")[0])):
        expected = trace(own("llama")[0], tokenizer, TEXT)
        assert set(differences(trace(wrapped, tokenizer, TEXT), expected).values()) == {0.0}


def test_an_old_library_is_refused_with_the_version_that_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    missing_library.cache_clear()
    request.addfinalizer(missing_library.cache_clear)
    facts = tmp_path / "transformers-4.57.1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.4\nName: transformers\nVersion: 4.57.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    model, tokenizer = own("llama")
    said = f"needs transformers {OLDEST} or newer, and 4.57.1 is installed"
    with pytest.raises(ValueError, match=said):
        trace(model, tokenizer, TEXT)
    with pytest.raises(ValueError, match=said):
        load_model(str(saved("llama")))


def test_what_cannot_be_shown_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="`capture` records the attention of other modules"):
        trace(torch.nn.Linear(2, 2), None, [1, 2])
    described = own("llama")[0].config
    with torch.device("meta"):
        empty = transformers.LlamaForCausalLM(described)
    with pytest.raises(ValueError, match="are not in memory; record it"):
        trace(empty, None, [1, 2])
    vision = transformers.ViTModel(
        transformers.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1)
    )
    with pytest.raises(ValueError, match="is not one that reads and writes text"):
        trace(vision, None, [1, 2])
