"""A captured module opens on the pages that need only attention; the others say what is missing."""

import re
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from model import load_trace
from model.analysis.heads.statistics import families
from model.capture import capture
from model.capture.capture import ABSENT, REASON
from tests.model.capture.own_modules import OwnAttention
from tests.pages.reading import said

ROOT = Path(__file__).resolve().parents[3]


def relative(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    far = torch.ones(k.shape[-2], k.shape[-1])
    return (q @ k.mT + (q @ far.mT).flip(-1)).softmax(-1) @ v


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = torch.nn.Sequential(OwnAttention(relative), OwnAttention(relative))
    path = tmp_path_factory.mktemp("captured") / "own.safetensors"
    capture(module, torch.randn(1, 4, 16), tokens=["The", "cat", "sat", "down"]).save(path)
    return path


def opened(page: str, file: Path) -> str:
    app = AppTest.from_file(ROOT / "pages" / f"{page}.py", default_timeout=300)
    app.query_params["model"] = str(file)
    app.run()
    assert not app.exception
    shown = (*app.info, *app.warning, *app.main.caption)
    return "\n".join(part.value for part in shown).replace("\\", "")


def test_all_heads_names_the_module_and_what_is_not_certain(file: Path) -> None:
    shown = opened("all_heads", file)
    assert re.search(r"\b[01] H\d\b", shown)
    assert "Not certain of" in shown
    assert "second product" in shown


def test_a_page_that_needs_more_says_what_is_missing(file: Path) -> None:
    assert REASON in opened("layer_norm", file)


def test_what_was_found_around_the_attention_is_drawn(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes = GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=16)
    path = tmp_path / "around.safetensors"
    capture(GPT2LMHeadModel(sizes), torch.tensor([[3, 1, 4, 1]]), tokens=[*"abcb"]).save(path)
    for page in ("layer_norm", "feed_forward", "prediction"):
        app = AppTest.from_file(ROOT / "pages" / f"{page}.py", default_timeout=300)
        app.query_params["model"] = str(path)
        app.run()
        assert not app.exception
        assert not app.error
        assert app.get("plotly_chart"), page
        assert ABSENT not in said(app)


def test_sub_layers_of_other_lengths_stand_side_by_side(tmp_path: Path) -> None:
    class Halved(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = OwnAttention(relative), OwnAttention(relative)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x)[:, ::2])

    path = tmp_path / "halved.safetensors"
    capture(Halved(), torch.randn(1, 6, 16)).save(path)
    assert "certain of first" in opened("all_heads", path)
    trace = load_trace(path)
    assert [(len(one.queries(trace)), len(one.keys(trace))) for one in families(trace)] == [
        (6, 6),
        (3, 3),
    ]
