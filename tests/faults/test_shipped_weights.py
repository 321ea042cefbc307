"""Files that ship with the app are missing, cut short or changed: the page says which, and goes on."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from streamlit.testing.v1 import AppTest

from model import load_model
from model.loading.shipped import ASSETS, HASHES, WEIGHTS, DamagedError, load_asset
from model.system.files import file_hash
from tests.cases import each
from tests.faults.conftest import TYPED, told, typed
from tests.harm import change_one_bit, cut_short, remove


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped models, in use instead of them."""
    copy = tmp_path / "assets"
    shutil.copytree(ASSETS, copy, ignore=shutil.ignore_patterns("checkpoints"))
    monkeypatch.setattr("model.loading.loading.ASSETS", copy)
    return copy


@each("file", [WEIGHTS, "config.json", "tokenizer.json"])
@each("harm", [remove, cut_short, change_one_bit])
def test_a_harmed_file_is_named_and_never_used(
    assets: Path, file: str, harm: Callable[[Path], None]
) -> None:
    harm(assets / "induction" / file)
    with pytest.raises(DamagedError, match=rf"The file {file} of induction is .*Reinstall the app"):
        load_model("induction")


@each("file", [HASHES, "card.json"])
@each("harm", [remove, cut_short])
def test_a_harmed_list_is_named(assets: Path, file: str, harm: Callable[[Path], None]) -> None:
    harm(assets / "induction" / file)
    with pytest.raises(DamagedError, match=rf"{file} of induction is"):
        load_model("induction")


def test_weights_of_another_shape_are_refused_even_with_a_fitting_hash(assets: Path) -> None:
    folder = assets / "induction"
    weights = safetensors.torch.load_file(folder / WEIGHTS)
    name = next(name for name, value in weights.items() if value.ndim == 2)
    weights[name] = torch.zeros(3, 5, dtype=torch.float16)
    safetensors.torch.save_file(weights, folder / WEIGHTS)
    hashes = json.loads((folder / HASHES).read_text())
    hashes[WEIGHTS] = file_hash(folder / WEIGHTS)
    (folder / HASHES).write_text(json.dumps(hashes))
    with pytest.raises(DamagedError, match="do not fit the model induction"):
        load_asset(folder)


def test_the_page_says_so_keeps_the_sentence_and_opens_other_models(
    assets: Path, opened: Callable[..., AppTest]
) -> None:
    cut_short(assets / "stories" / WEIGHTS)
    app = opened("pages/attention.py", model="stories")
    assert "model.safetensors of stories is damaged" in told(app)
    assert "the other models still work" in told(app)
    assert typed(app) == TYPED
    picker = next(box for box in app.selectbox if box.label == "Model")
    picker.set_value("house-gpt").run()
    assert told(app) == ""
    assert typed(app) == TYPED
    assert app.get("bidi_component")
