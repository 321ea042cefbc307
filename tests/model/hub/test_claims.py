"""What a config claims: refused where it takes memory that the weights do not have, else never."""

import json
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import transformers

from model import load_model
from model.hub.claims import check_claims
from tests.cases import cases
from tests.model.hub_models import ADDING, FAMILIES, REFUSED, TARGET, build, save, saved

POSITIONS = ("max_position_embeddings", "n_positions")
LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "encoder_layers", "decoder_layers")
HUGE = 10**12


@pytest.fixture
def peak() -> Iterator[Callable[[], int]]:
    """The most bytes that Python has taken since the test began."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


@cases("family, layers", [(family, 1) for family in FAMILIES] + [("qwen2", 2), ("qwen3", 2)])
def test_a_small_model_with_the_librarys_own_defaults_is_shown(
    family, layers, tmp_path: Path
) -> None:
    """Only its sizes are chosen: how far it reads, its windows and the rest are the library's own."""
    kind, settings, choices = FAMILIES[family]
    own = (*POSITIONS, "layer_types")
    chosen = {name: value for name, value in choices.items() if name not in own}
    chosen |= {name: layers for name in LAYERS if name in chosen}
    folder = save(
        tmp_path / f"{family} {layers}", build(kind, settings, chosen), adds=family in ADDING
    )
    default = getattr(transformers, settings)()
    written = json.loads((folder / "config.json").read_text())
    if family in ("qwen2", "qwen3"):
        assert written["max_window_layers"] == default.max_window_layers == 28
    assert any(written.get(name) == getattr(default, name, None) for name in POSITIONS)
    check_claims(folder)
    if family in ("qwen2", "gemma3", "gpt_neo", "modernbert", "marian", "t5"):
        model = load_model(str(folder), device="cpu")
        # Untrained, it would write its own target until nothing more fits.
        target = TARGET if model.config.shape == "encoder-decoder" else None
        assert model.trace("the cat saw", target).check() < 1e-4


@cases("family", REFUSED)
def test_what_is_refused_for_its_architecture_claims_nothing_false(family) -> None:
    check_claims(saved(family))


def claiming(folder: Path, family: str, **claims: object) -> Path:
    copy = shutil.copytree(saved(family), folder / "copy")
    written = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(written | claims))
    return copy


@cases(
    "family, claims",
    [
        ("qwen2", {"max_window_layers": HUGE}),
        ("qwen3", {"max_window_layers": -1}),
        ("llama", {"max_position_embeddings": HUGE}),  # rotary: no table
        ("gpt_neox", {"max_position_embeddings": 10**30}),
        ("mistral", {"some_future_hidden_size": HUGE, "text_dim": HUGE, "spare_layers": HUGE}),
    ],
)
def test_a_claim_that_takes_no_memory_is_none(family, claims, tmp_path: Path) -> None:
    model = load_model(str(claiming(tmp_path, family, **claims)), device="cpu")
    assert model.trace("the cat saw").check() < 1e-4


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("qwen2", "num_hidden_layers"),
        ("qwen2", "vocab_size"),
        ("qwen3", "head_dim"),
        ("gpt2", "n_positions"),
        ("opt", "max_position_embeddings"),
        ("marian", "max_position_embeddings"),  # a table of sines, computed when it is built
        ("bert", "max_position_embeddings"),
        ("bart", "decoder_layers"),
        ("distilbert", "n_layers"),
        ("mixtral", "num_local_experts"),
    ],
)
def test_a_claim_that_takes_memory_is_refused_before_it_is_taken(
    family: str, name: str, tmp_path: Path, peak: Callable[[], int]
) -> None:
    with pytest.raises(ValueError, match=rf"its config (says {name} is 1,0|describes)") as said:
        load_model(str(claiming(tmp_path, family, **{name: HUGE})), device="cpu")
    assert str(said.value).endswith(".")
    assert peak() < 64_000_000


def test_tables_that_grow_with_the_square_of_a_size_are_weighed(tmp_path: Path) -> None:
    """GPT-Neo keeps a mask of every pair of positions in each layer: here 40 GB of them."""
    choices: dict[str, Any] = {
        "vocab_size": 24, "hidden_size": 48, "num_layers": 1, "num_heads": 6,
        "attention_types": [[["global"], 1]], "max_position_embeddings": 64,
        "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    body = build("GPTNeoForCausalLM", "GPTNeoConfig", choices)
    folder = save(tmp_path / "neo", body, adds=False)
    written = json.loads((folder / "config.json").read_text())
    written["max_position_embeddings"] = 200_000
    (folder / "config.json").write_text(json.dumps(written))
    with pytest.raises(ValueError, match="its config describes tables of 40,0"):
        load_model(str(folder), device="cpu")
