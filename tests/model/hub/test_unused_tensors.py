"""Tensors of a model's files that the library leaves out are named, not dropped in silence."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from model import load_model
from tests.model.hub.test_heads import saved as with_head
from tests.model.hub_models import TEXT, loaded, saved
from tests.pages.reading import said, visit

DISTANCES = "encoder.layer.0.attention.self.distance_embedding.weight"


@pytest.fixture
def relative(tmp_path: Path) -> Path:
    """A BERT that was trained with relative positions, which the library does not know any more."""
    folder = shutil.copytree(saved("bert"), tmp_path / "bert")
    state = load_file(folder / "model.safetensors")
    state[DISTANCES] = torch.zeros(127, 8)
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    return folder


def test_what_the_library_leaves_out_is_told_and_nothing_else(relative: Path) -> None:
    assert load_model(str(relative), device="cpu").unused == (DISTANCES,)
    classifier = load_model(str(with_head("BertForSequenceClassification")), device="cpu")
    assert classifier.unused == ("classifier.bias", "classifier.weight")
    for family in ("bert", "gpt2", "llama", "t5"):
        assert loaded(family).unused == ()


def test_a_page_warns_of_a_layers_tensor_and_mentions_a_heads(relative: Path) -> None:
    app = visit("home", model=str(relative), text=TEXT)
    assert any(DISTANCES in warning.value.replace("\\", "") for warning in app.warning)
    app = visit("home", model=str(with_head("BertForSequenceClassification")), text=TEXT)
    assert not app.warning
    assert "2 tensors" in said(app)
