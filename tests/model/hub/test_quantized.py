"""Weights in 4 and 8 bits: which open, that their numbers are the unpacked ones, what is said of others."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from model import load_model
from model.download.entries import Entry, packed_weights
from model.download.hub_folder import Packed, checked_size, packed
from model.loading.loading import by_layer
from model.loading.registry import silent
from model.trace.arrays import Array
from tests.model.hub_models import TEXT, saved

QUERY = "model.layers.0.self_attn.q_proj.weight"
NF4 = (  # the quantiles of a normal distribution: QLoRA (Dettmers et al. 2023), appendix E
    -1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0,
)  # fmt: skip


def by_bitsandbytes(folder: Path, **chosen: Any) -> dict[str, Any]:
    """Packs the tiny Llama as the library does."""
    how = transformers.BitsAndBytesConfig(**chosen)
    body = transformers.AutoModelForCausalLM.from_pretrained(
        saved("llama"), quantization_config=how, device_map="cpu", dtype=torch.float32
    )
    body.save_pretrained(folder)
    return load_file(folder / "model.safetensors")


def eight(folder: Path) -> Array:
    state = by_bitsandbytes(folder, load_in_8bit=True)
    scales = state[QUERY.replace("weight", "SCB")].numpy()
    return state[QUERY].numpy().astype(np.float32) * scales[:, None] / 127


def four(folder: Path, twice: bool = False) -> Array:
    """twice: the largest values of the blocks are packed too."""
    state = by_bitsandbytes(
        folder, load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=twice
    )
    bytes_ = state[QUERY].numpy().reshape(-1)
    codes = np.array(NF4, np.float32)[np.stack([bytes_ >> 4, bytes_ & 15], -1).reshape(-1)]
    absmax = state[f"{QUERY}.absmax"].numpy()
    if twice:
        said = json.loads(bytes(state[f"{QUERY}.quant_state.bitsandbytes__nf4"].tolist()))
        values, largest = (
            state[f"{QUERY}.nested_{name}"].numpy() for name in ("quant_map", "absmax")
        )
        absmax = values[absmax] * np.repeat(largest, 256)[: len(absmax)] + said["nested_offset"]
    return (codes.reshape(-1, 64) * absmax[:, None]).reshape(48, 48)


def by_hand(
    folder: Path, described: dict[str, Any], packs: Callable[[torch.Tensor], dict[str, Any]]
) -> None:
    """Packs each matrix of the layers; names of what `packs` gives end as the library's files have them."""
    state = load_file(saved("llama") / "model.safetensors")
    for name in [name for name in state if "proj.weight" in name]:
        made = packs(state.pop(name))
        state |= {name.removesuffix("weight") + ending: one for ending, one in made.items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": described}))


def fp8(folder: Path) -> Array:
    """Blocks of 16 × 16 with a scale each, as DeepSeek-V3's files have them."""
    kept: list[Array] = []

    def packs(weight: torch.Tensor) -> dict[str, Any]:
        blocks = weight.unflatten(0, (-1, 16)).unflatten(2, (-1, 16))
        scales = blocks.abs().amax((1, 3)) / 448
        small = (blocks / scales[:, None, :, None]).to(torch.float8_e4m3fn)
        whole = small.float() * scales[:, None, :, None]
        kept.append(whole.flatten(2).flatten(0, 1).numpy())
        return {"weight": small.flatten(2).flatten(0, 1), "weight_scale_inv": scales}

    described = {"quant_method": "fp8", "activation_scheme": "dynamic",
                 "weight_block_size": [16, 16]}  # fmt: skip
    by_hand(folder, described, packs)
    return _query(kept)


def compressed(folder: Path) -> Array:
    """8 bits with a scale for each row, as compressed-tensors writes them."""
    kept: list[Array] = []

    def packs(weight: torch.Tensor) -> dict[str, Any]:
        scales = weight.abs().amax(1, keepdim=True) / 127
        small = (weight / scales).round().to(torch.int8)
        kept.append((small.float() * scales).numpy())
        return {"weight": small, "weight_scale": scales}

    weights = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"}
    described = {
        "quant_method": "compressed-tensors", "format": "int-quantized",
        "quantization_status": "compressed", "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
    }  # fmt: skip
    by_hand(folder, described, packs)
    return _query(kept)


def _query(kept: list[Array]) -> Array:
    names = [
        name for name in load_file(saved("llama") / "model.safetensors") if "proj.weight" in name
    ]
    return kept[names.index(QUERY)]


PACKED: dict[str, tuple[Callable[[Path], Array], Packed]] = {
    "4 bits": (four, Packed("bitsandbytes", 4)),
    "4 bits, twice": (partial(four, twice=True), Packed("bitsandbytes", 4)),
    "8 bits": (eight, Packed("bitsandbytes", 8)),
    "fp8": (fp8, Packed("fp8", 8)),
    "compressed": (compressed, Packed("compressed-tensors", 8)),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a tiny Llama that a test may pack."""
    return shutil.copytree(saved("llama"), tmp_path / "copy")


@pytest.mark.parametrize("kind", PACKED)
def test_packed_weights_open_with_the_unpacked_numbers_named_so(kind: str, folder: Path) -> None:
    packs, how = PACKED[kind]
    expected = packs(folder)
    model = load_model(str(folder), device="cpu")
    assert model.unproven == {}
    ours = model.module.named_weights()["decoder.blocks.0.self_attention.query.weight"]
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-6)
    assert packed(folder) == how
    assert packed_weights(Entry(str(folder), "", None, "", folder=folder)) == how
    assert {weight.dtype for weight in model.module.parameters()} == {torch.float32}
    loaded = sum(weight.nbytes for weight in model.module.parameters())
    assert loaded <= checked_size(folder) + 4 * 24 * 48  # what is tied counts once or twice


def test_a_packed_pass_of_the_library_differs_by_what_it_rounds_beside_the_weights(
    folder: Path,
) -> None:
    """LLM.int8 rounds what each matrix reads: its attention is near the shown one, and not it."""
    eight(folder)
    model = load_model(str(folder), device="cpu")
    trace = model.trace(TEXT)
    stock = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    )
    with torch.inference_mode():
        theirs = stock(model.ids(trace.tokens), output_attentions=True).attentions
    apart = max(
        float(np.abs(one.weights(head) - weights[0, head].numpy()).max())
        for one, weights in zip(trace.attention, theirs, strict=True)
        for head in range(one.heads)
    )
    assert 1e-5 < apart < 0.05


def change(folder: Path, ending: str, altered: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Alters every tensor whose name ends so."""
    file = folder / "model.safetensors"
    state = load_file(file)
    found = {name: altered(one) for name, one in state.items() if name.endswith(ending)}
    assert found
    save_file(state | found, file, {"format": "pt"})


def larger(state: torch.Tensor) -> torch.Tensor:
    """The description of a matrix, as JSON in bytes, with a thousand times as many rows."""
    said = json.loads(bytes(state.tolist()))
    said["shape"][0] *= 1_000
    return torch.tensor(list(json.dumps(said).encode()), dtype=torch.uint8)


LIES: dict[str, tuple[Callable[[Path], Array], str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "rows that are not there": (four, "bitsandbytes__nf4", larger),
    "too few largest values": (four, "absmax", lambda one: one[:-1].clone()),
    "a short list of values": (four, "quant_map", lambda one: one[:3].clone()),
    "too few scales": (eight, "SCB", lambda one: one[:-1].clone()),
}


@pytest.mark.parametrize("kind", LIES)
def test_a_description_that_does_not_fit_its_matrix_is_refused_unread(
    kind: str, folder: Path
) -> None:
    packs, ending, altered = LIES[kind]
    packs(folder)
    change(folder, ending, altered)
    with pytest.raises(ValueError, match=r"cannot be shown: .*\.$"):
        load_model(str(folder), device="cpu")


def test_a_package_that_is_missing_is_named_with_its_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    four(folder)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"the package accelerate is needed, .* “quantized”"):
        load_model(str(folder), device="cpu")


def test_packed_weights_are_not_read_layer_by_layer(folder: Path) -> None:
    four(folder)
    with pytest.raises(ValueError, match=r"quantized .* cannot be read layer by layer"):
        by_layer(Entry("packed", "", None, "", folder=folder), "packed", silent)
