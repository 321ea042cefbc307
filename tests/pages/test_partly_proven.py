"""Models of which some parts are not proven, or whose weights are in few bits: a page says which and why."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.trace.unproven import WORDS
from tests.cases import cases
from tests.model.hub.test_quantized import eight
from tests.model.hub_families import GROUPED
from tests.model.hub_models import TEXT as HUB_TEXT
from tests.model.hub_models import build, loaded, save, saved, traced
from tests.pages.reading import control, said, visit

TEXT = "the cat saw the dog and the cat saw the mat"


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose convolutions stand between its attention layers: only attention is proven."""
    layers = ["conv", "full_attention", "conv", "full_attention"]
    body = build(
        "Lfm2ForCausalLM",
        "Lfm2Config",
        {**GROUPED, "num_hidden_layers": len(layers), "layer_types": layers},
    )
    return str(save(tmp_path_factory.mktemp("hybrid"), body, adds=False))


def opened(page: str, model: str | Path, **view: str) -> AppTest:
    return visit(page, model=str(model), text=TEXT, **view)


def map_of(app: AppTest) -> str:
    return next(one.value for one in app.get("html") if "The parts of the model" in one.value)


@cases("page", ["home", "all_heads"])
def test_pages_of_attention_show_a_model_of_which_nothing_else_is_proven(page, hybrid: str) -> None:
    app = opened(page, hybrid)
    assert not app.error
    assert "is not proven" not in said(app)


@cases("page, view, part", [
    ("layer_norm", {}, "norms"),
    ("stream", {"show": "Contributions"}, "stream"),
    ("stream", {"show": "Layer by layer"}, "unembedding"),
    ("all_heads", {"show": "What it writes"}, "stream"),
    ("shapes_and_cost", {}, "sizes"),
])  # fmt: skip
def test_a_page_says_which_part_is_not_proven_why_and_what_is(
    page, view, part, hybrid: str
) -> None:
    app = opened(page, hybrid, **view)
    assert not app.error
    words = said(app)
    assert f"{WORDS[part]}, because" in words
    assert "shown: attention" in words


def test_what_a_head_adds_to_a_logit_is_not_told_where_it_is_not_proven(hybrid: str) -> None:
    app = opened("all_heads", hybrid, show="What it writes")
    control(app, "Measure").select("Effect on a logit").run()
    assert f"{WORDS['logit_parts']}, because" in said(app)


def test_experts_are_shown_first_with_the_routers_weights() -> None:
    app = opened("feed_forward", saved("mixtral"))
    record = traced(loaded("mixtral"), record="full").experts[0]
    most = record.weights[0].max()
    assert "Token 0" in said(app)
    assert f"goes to expert {record.chosen[0, 0]} with weight **{most:.3f}**" in said(app)
    assert np.argmax(record.shares[0]) == record.chosen[0, 0]
    assert "4 experts" in map_of(app)


@pytest.mark.filterwarnings("ignore:.* code of its own")
def test_a_page_of_a_model_with_code_of_its_own_says_that_it_is_not_run(tmp_path: Path) -> None:
    folder = shutil.copytree(saved("llama"), tmp_path / "copy")
    described = json.loads((folder / "config.json").read_text())
    described["auto_map"] = {"AutoModelForCausalLM": "modeling_own.Own"}
    (folder / "config.json").write_text(json.dumps(described))
    for model, own in ((folder, True), (saved("llama"), False)):
        assert ("is not run" in said(visit("home", model=str(model), text=HUB_TEXT))) is own


@pytest.mark.slow
def test_every_page_of_a_quantized_model_says_that_its_weights_are_dequantized(
    tmp_path: Path,
) -> None:
    folder = shutil.copytree(saved("llama"), tmp_path / "copy")
    eight(folder)
    for page in ("home", "all_heads"):
        words = said(visit(page, model=str(folder), text=HUB_TEXT))
        assert "dequantized from 8 bits" in words
    assert "dequantized" not in said(visit("home", model=str(saved("llama")), text=HUB_TEXT))
