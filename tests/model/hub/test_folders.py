"""Folders that hold no model that can be shown, and GPT-2 in our own code."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from model import Model, load_model
from model.run.tokenizers import gpt2
from tests.model.hub_models import loaded, saved


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a tiny Llama that a test may damage."""
    return shutil.copytree(saved("llama"), tmp_path / "copy")


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
    from safetensors.torch import load_file, save_file

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


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_folder_that_cannot_be_shown_is_refused_with_a_sentence(kind: str, folder: Path) -> None:
    damage, reason = DAMAGE[kind]
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
                assert token.span is not None
                word = text[slice(*token.span)]
                assert word == (token.text if token.text != "<unk>" else "zebra")
        assert model.new_words(text) == ("zebra",)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, GPT2LMHeadModel]:
    """A random GPT-2 with the real vocabulary, as the app loads it, and as the library does."""
    folder = tmp_path_factory.mktemp("gpt2")
    torch.manual_seed(0)
    config = GPT2Config(n_embd=48, n_layer=3, n_head=6, n_positions=64)
    stock = GPT2LMHeadModel(config).eval()
    for weight in stock.parameters():
        weight.data = weight + torch.randn(weight.shape) / 10
    stock.save_pretrained(folder)
    letters = _letters()
    spelled = {
        "".join(letters[byte] for byte in gpt2().decode_single_token_bytes(id_)): id_
        for id_ in range(gpt2().n_vocab - 1)
    }
    (folder / "vocab.json").write_text(json.dumps({**spelled, "<|endoftext|>": 50_256}))
    return load_model(str(folder), device="cpu"), stock


def _letters() -> dict[int, str]:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return dict(bytes_to_unicode())


def test_gpt2_runs_in_our_own_decoder_with_hugging_faces_logits(
    own: tuple[Model, GPT2LMHeadModel],
) -> None:
    model, stock = own
    assert type(model.module).__name__ == "Transformer"
    trace = model.trace("The cat sat on the mat. 😀 <|endoftext|>")
    ids = [token.id for token in trace.tokens]
    assert ids == gpt2().encode(trace.text, disallowed_special=())
    with torch.inference_mode():
        theirs = stock(torch.tensor([ids])).logits[0].numpy()
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, theirs, atol=1e-4)


def test_gpt2_with_another_vocabulary_or_setting_is_left_to_the_library() -> None:
    assert type(loaded("gpt2").module).__name__ == "HubTransformer"
