"""Files that ship with the app are missing, cut short or changed: the page says which, and goes on."""

import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from tempfile import mkdtemp

import pytest
import safetensors.torch
import torch
from streamlit.testing.v1 import AppTest

from model import load_model
from model.loading.shipped import ASSETS, HASHES, WEIGHTS, DamagedError, load_asset
from model.system.files import file_hash
from tests.cases import cases
from tests.faults.conftest import TYPED, told, typed
from tests.harm import change_one_bit, cut_short, remove


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Call it with names: a folder with copies of these shipped models, in use instead of all."""

    def copied_(*names: str) -> Path:
        copy = Path(mkdtemp(dir=tmp_path))
        for name in names:
            shutil.copytree(
                ASSETS / name, copy / name, ignore=shutil.ignore_patterns("checkpoints")
            )
        monkeypatch.setattr("model.loading.loading.ASSETS", copy)
        return copy

    return copied_


def assert_named(folder: Path, file: str, harm: Callable[[Path], None]) -> None:
    harm(folder / file)
    with pytest.raises(DamagedError, match=rf"{file} of induction is .*Reinstall the app"):
        load_model("induction")


@cases(
    "file, harm",
    product([WEIGHTS, "config.json", "tokenizer.json"], [remove, cut_short, change_one_bit]),
)
def test_a_harmed_file_is_named_and_never_used(file, harm, copied: Callable[..., Path]) -> None:
    assert_named(copied("induction") / "induction", file, harm)


@cases("file, harm", product([HASHES, "card.json"], [remove, cut_short]))
def test_a_harmed_list_is_named(file, harm, copied: Callable[..., Path]) -> None:
    assert_named(copied("induction") / "induction", file, harm)


def test_weights_of_another_shape_are_refused_even_with_a_fitting_hash(
    copied: Callable[..., Path],
) -> None:
    folder = copied("induction") / "induction"
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
    copied: Callable[..., Path], opened: Callable[..., AppTest]
) -> None:
    cut_short(copied("stories", "house-gpt") / "stories" / WEIGHTS)
    app = opened("pages/home.py", model="stories")
    assert f"{WEIGHTS} of stories" in told(app)
    assert str(DamagedError("")) in told(app)
    assert typed(app) == TYPED
    picker = next(box for box in app.selectbox if box.label == "Model")
    picker.set_value("house-gpt").run()
    assert told(app) == ""
    assert typed(app) == TYPED
    assert app.get("bidi_component")
