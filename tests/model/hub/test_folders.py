"""Folders that hold no model that can be shown, and a GPT-2 with its own vocabulary."""

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, processors
from transformers import (
    AutoTokenizer,
    ByT5Tokenizer,
    DebertaV2Tokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Tokenizer,
    LlamaForCausalLM,
    PreTrainedModel,
)
from transformers.convert_slow_tokenizer import bytes_to_unicode
from transformers.tokenization_utils_tokenizers import generate_merges

from model import load_model
from model.run.tokenizers import gpt2
from tests.cases import cases
from tests.model.hub_families import FAMILIES, GROUPED
from tests.model.hub_models import build, loaded, saved, train_pieces


def test_the_library_makes_one_model_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once would leave its functions replaced for ever: no later model would have its tied weights."""
    family = saved("gpt2")
    load, inside, together = PreTrainedModel.from_pretrained.__func__, Semaphore(1), []

    def watched(*arguments: Any, **choices: Any) -> Any:
        alone = inside.acquire(timeout=0)
        together.append(not alone)
        time.sleep(0.2)
        try:
            return load(*arguments, **choices)
        finally:
            if alone:
                inside.release()

    monkeypatch.setattr(PreTrainedModel, "from_pretrained", classmethod(watched))
    with ThreadPoolExecutor(3) as pool:
        models = list(pool.map(lambda _: load_model(str(family), device="cpu"), range(3)))
    assert together == [False] * 3
    assert len({model.parameter_count for model in models}) == 1


def copied(tmp_path: Path) -> Path:
    """A copy of a tiny Llama that a test may damage."""
    return shutil.copytree(saved("llama"), tmp_path / "copy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copied(tmp_path)


def change_config(folder: Path, **settings: object) -> None:
    described = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(described | settings))


def cut_short(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def pickled(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.rename(folder / "pytorch_model.bin")


def without_tokenizer(folder: Path) -> None:
    for path in folder.glob("*token*"):
        path.unlink()


def without_some_weights(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    del state["model.layers.1.self_attn.q_proj.weight"]
    save_file(state, folder / "model.safetensors", {"format": "pt"})


DAMAGE = {
    "truncated": (cut_short, "damaged or cut short"),
    "pickle": (pickled, "pickle"),
    "no tokenizer": (without_tokenizer, "no tokenizer"),
    "missing weights": (without_some_weights, "lack 1 of its weights"),
    "unknown architecture": (
        lambda folder: change_config(folder, model_type="nonesuch"),
        "does not know its architecture 'nonesuch'",
    ),
    "its own code": (
        lambda folder: change_config(
            folder, model_type="nonesuch", auto_map={"AutoConfig": "run.Config"}
        ),
        "needs its own code",
    ),
    "quantized": (
        lambda folder: change_config(
            folder, quantization_config={"quant_method": "gptq", "bits": 4}
        ),
        r"quantized \(gptq, 4 bits\)",
    ),
    "bitsandbytes": (
        lambda folder: change_config(
            folder, quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True}
        ),
        r"quantized \(bitsandbytes, 8 bits\), and its files hold none that are",
    ),
    "quantized in an unknown way": (
        lambda folder: change_config(folder, quantization_config=["<b>"]),
        r"quantized \(in an unknown way\)",
    ),
    "sizes that do not fit": (
        lambda folder: change_config(folder, intermediate_size=96),
        "cannot be shown",
    ),
    "no text": (
        lambda folder: change_config(folder, model_type="vit", architectures=["ViTModel"]),
        "not one that reads and writes text",
    ),
}


@cases("kind", DAMAGE)
def test_a_folder_that_cannot_be_shown_is_refused_with_a_sentence(kind, tmp_path: Path) -> None:
    folder, (damage, reason) = copied(tmp_path), DAMAGE[kind]
    damage(folder)
    with pytest.raises(ValueError, match=reason) as refused:
        load_model(str(folder), device="cpu")
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


def test_code_that_comes_with_a_model_is_never_run(folder: Path, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    (folder / "run.py").write_text(f"open({str(trap)!r}, 'w')\nclass Config: ...\n")
    change_config(folder, auto_map={"AutoConfig": "run.Config"}, model_type="nonesuch")
    with pytest.raises(ValueError, match="code"):
        load_model(str(folder), device="cpu")
    assert not trap.exists()


def test_code_that_comes_with_a_model_of_a_known_kind_is_said_not_to_be_run(folder: Path) -> None:
    own = {
        "AutoModelForCausalLM": "org/own--modeling_own.Own",
        "AutoConfig": "configuration_own.Config",
    }
    change_config(folder, auto_map=own, architectures=["OwnForCausalLM"])
    with pytest.warns(UserWarning, match=r"modeling_own\.py, configuration_own\.py"):
        load_model(str(folder), device="cpu")


def test_of_a_whole_file_beside_shards_the_librarys_choice_is_read(tmp_path: Path) -> None:
    build("LlamaForCausalLM", "LlamaConfig", GROUPED).save_pretrained(
        tmp_path / "shards", max_shard_size="20KB"
    )
    folder = copied(tmp_path)
    left = load_file(folder / "model.safetensors")
    left["model.embed_tokens.weight"] = left["model.embed_tokens.weight"] * 2
    save_file(left, folder / "model.safetensors", {"format": "pt"})
    for file in (tmp_path / "shards").glob("model*"):
        shutil.copy(file, folder)
    assert len(list(folder.glob("model-*"))) > 1
    stock = LlamaForCausalLM.from_pretrained(folder).eval()
    trace = load_model(str(folder), device="cpu").trace("the cat saw the dog")
    with torch.inference_mode():
        theirs = stock(torch.tensor([[token.id for token in trace.tokens]])).logits[0].numpy()
    np.testing.assert_allclose(trace.logits, theirs, atol=1e-5)
    assert torch.equal(stock.model.embed_tokens.weight, left["model.embed_tokens.weight"])


def test_a_model_that_needs_more_memory_than_there_is_for_models_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"needs 0 MB of memory and this app keeps 0 MB"):
        load_model(str(folder), device="cpu", most_bytes=1_000)


def test_places_of_tokens_are_where_their_letters_stand() -> None:
    text = "the cat  saw the zebra"
    for family in ("llama", "bert"):
        model = loaded(family)
        for token in model.tokens(text):
            if token.special:
                assert token.span is None
            else:
                word = text[slice(*token.span)]
                assert word == (token.text if token.text != "<unk>" else "zebra")
        assert model.new_words(text) == ("zebra",)


@pytest.fixture(scope="module")
def gpt2_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random GPT-2 with GPT-2's own vocabulary, as the hub lays it out."""
    folder = tmp_path_factory.mktemp("gpt2")
    torch.manual_seed(0)
    stock = GPT2LMHeadModel(GPT2Config(n_embd=48, n_layer=3, n_head=6, n_positions=64))
    for weight in stock.parameters():
        weight.data = weight + torch.randn(weight.shape) / 10
    stock.save_pretrained(folder)
    letters = bytes_to_unicode()
    spelled = {
        "".join(letters[byte] for byte in gpt2().decode_single_token_bytes(id_)): id_
        for id_ in range(gpt2().n_vocab - 1)
    }
    spelled["<|endoftext|>"] = gpt2().eot_token
    GPT2Tokenizer(vocab=spelled, merges=generate_merges(spelled)).save_pretrained(folder)
    return folder


def own_output_matrix(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    state["lm_head.weight"] = state["transformer.wte.weight"].flip(0)
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def space_before(folder: Path) -> None:
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"add_prefix_space": True}))


def token_before(folder: Path) -> None:
    described = Tokenizer.from_file(str(folder / "tokenizer.json"))
    end = ("<|endoftext|>", 50_256)
    described.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[end]
    )
    described.save(str(folder / "tokenizer.json"))


@pytest.mark.slow
@pytest.mark.parametrize("changes", [(), (own_output_matrix, space_before, token_before)])
def test_gpt2_has_the_librarys_ids_and_logits_whatever_its_files_add(
    changes: tuple[Callable[[Path], None], ...], gpt2_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(gpt2_folder, tmp_path / "gpt2")
    for change in changes:
        change(folder)
    trace = load_model(str(folder), device="cpu").trace("The cat sat on the mat. 😀")
    ids = AutoTokenizer.from_pretrained(folder)(trace.text)["input_ids"]
    assert [token.id for token in trace.tokens] == ids
    stock = GPT2LMHeadModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        theirs = stock(torch.tensor([ids])).logits[0].numpy()
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, theirs, atol=1e-4)


def test_a_tokenizer_of_bytes_has_no_file(tmp_path: Path) -> None:
    choices = {**FAMILIES["t5"][2], "vocab_size": 384}
    build("T5ForConditionalGeneration", "T5Config", choices).save_pretrained(tmp_path)
    ByT5Tokenizer().save_pretrained(tmp_path)
    model = load_model(str(tmp_path), device="cpu")
    library = AutoTokenizer.from_pretrained(tmp_path)
    for text in ("the cat", "l'été 😀 <extra_id_1>"):
        ids = [token.id for token in model.tokens(text)]
        assert ids == library(text)["input_ids"]
        assert model.tokenizer.decode(ids) == library.decode(ids, skip_special_tokens=True)


def test_deberta_reads_its_pieces_from_a_file_of_its_own_name(tmp_path: Path) -> None:
    train_pieces(tmp_path / "spm", ["the cat saw the dog", "a dog saw the cat"] * 9)
    tokenizer = DebertaV2Tokenizer.from_pretrained(tmp_path)
    choices = {**FAMILIES["deberta-v3"][2], "vocab_size": len(tokenizer) + 8}
    build("DebertaV2Model", "DebertaV2Config", choices).save_pretrained(tmp_path)
    model = load_model(str(tmp_path), device="cpu")
    assert [file.name for file in tmp_path.iterdir() if "token" in file.name] == []
    text = "the cat saw a zebra"
    expected = AutoTokenizer.from_pretrained(tmp_path)(text)["input_ids"]
    assert [token.id for token in model.tokens(text)] == expected
