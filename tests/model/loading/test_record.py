"""A pass is written to a file, also of a model of which only one layer is in memory at a time."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from model import load_trace
from model.hub.layer_by_layer import LoadedLayers
from model.loading.record import record, record_lines
from tests.model.hub_models import TEXT, loaded, save, saved

FAMILIES = ("llama", "gpt2", "qwen2", "bert", "t5", "gpt_neox", "bart", "gemma3", "bloom")


@pytest.mark.parametrize("family", FAMILIES)
def test_layer_by_layer_the_file_is_the_same(family: str, tmp_path: Path) -> None:
    whole, layered = tmp_path / "whole.safetensors", tmp_path / "layered.safetensors"
    loaded(family).trace(TEXT, record="full").save(whole)
    record(str(saved(family)), TEXT, layered, full=True, by_layer=True)
    assert whole.read_bytes() == layered.read_bytes()


def test_one_layer_at_a_time_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0
    read = LoadedLayers.read

    def counted(self: LoadedLayers, layer: str, name: str, weight: torch.nn.Parameter) -> Any:
        nonlocal most
        found = read(self, layer, name, weight)
        held = sum(one.numel() for one in self.held.values())
        most = max(most, held)
        return found

    monkeypatch.setattr(LoadedLayers, "read", counted)
    record(str(saved("llama")), TEXT, tmp_path / "trace.safetensors", by_layer=True)
    body = transformers.AutoModelForCausalLM.from_pretrained(saved("llama"))
    layers = [sum(one.numel() for one in layer.parameters()) for layer in body.model.layers]
    assert len(layers) == 3
    assert most == max(layers)


def test_a_weight_that_is_no_number_is_found_where_it_is_read(tmp_path: Path) -> None:
    body = transformers.AutoModelForCausalLM.from_pretrained(saved("llama"))
    with torch.no_grad():
        body.model.layers[2].mlp.up_proj.weight[0, 0] = torch.nan
    save(tmp_path / "model", body, adds=False)
    with pytest.raises(ValueError, match=r"layers\.2\.mlp\.up_proj\.weight are not all finite"):
        record(str(tmp_path / "model"), TEXT, tmp_path / "trace.safetensors", by_layer=True)


def test_half_precision_on_the_disk_is_read_exactly(tmp_path: Path) -> None:
    body = transformers.AutoModelForCausalLM.from_pretrained(saved("llama"), dtype=torch.bfloat16)
    folder = save(tmp_path / "model", body, adds=False)
    whole, layered = tmp_path / "whole.safetensors", tmp_path / "layered.safetensors"
    record(str(folder), TEXT, whole)
    record(str(folder), TEXT, layered, by_layer=True)
    assert whole.read_bytes() == layered.read_bytes()


def test_each_line_has_its_file(tmp_path: Path) -> None:
    lines = [TEXT, "  ", "the dog saw the cat"]
    files = record_lines(str(saved("llama")), lines, tmp_path / "traces")
    assert [file.name for file in files] == ["001.safetensors", "002.safetensors"]
    assert [load_trace(file).text for file in files] == lines[::2]
    with pytest.raises(ValueError, match="no text"):
        record_lines(str(saved("llama")), [" "], tmp_path / "none")


def test_what_has_no_layers_in_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="small and has no files"):
        record("stories", "A cat.", tmp_path / "trace.safetensors", by_layer=True)
    record("stories", "A cat.", tmp_path / "made.safetensors")
    with pytest.raises(ValueError, match="is a recorded run: it has no layers to be read"):
        record(str(tmp_path / "made.safetensors"), "A cat.", tmp_path / "trace", by_layer=True)
    with pytest.raises(ValueError, match="There is no model"):
        record("no-such-model", "A cat.", tmp_path / "trace.safetensors", by_layer=True)
    mixed = transformers.AutoModelForCausalLM.from_pretrained(saved("llama"))
    mixed.model.layers[1].to(torch.bfloat16)
    folder = save(tmp_path / "mixed", mixed, adds=False)
    with pytest.raises(ValueError, match="cannot be read layer by layer"):
        record(str(folder), TEXT, tmp_path / "trace.safetensors", by_layer=True)
