"""Code that fails: the message is Python's or PyTorch's own, and the mended code runs."""

from collections.abc import Callable
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from model.worked.failing_code import failing_code
from tests.cases import cases

PIECES = tuple(failing_code().values())
X = torch.zeros(2, 6, 8)
SQUARE = torch.zeros(6, 6)
OTHER_MASK = torch.ones(16, 16, dtype=torch.bool)


def no_forward() -> object:
    return nn.Module()(X)


def no_dropout() -> object:
    return nn.Module().dropout


def transposed_batch() -> object:
    return torch.matmul(X, torch.zeros(8, 6, 2))


# What fails in each piece, called here without the rest, and what its message says of another module's name.
CAUSES: dict[str, tuple[Callable[[], object], tuple[str, str]]] = {
    "transpose-of-a-batch": (transposed_batch, ("", "")),
    "values-transposed": (lambda: torch.mm(SQUARE, torch.zeros(8, 6)), ("", "")),
    "map-of-the-wrong-height": (lambda: torch.mm(X[0], torch.zeros(6, 4)), ("", "")),
    "mask-of-the-whole-context": (lambda: SQUARE.masked_fill(OTHER_MASK, 0), ("", "")),
    "dropout-never-made": (no_dropout, ("'Module'", "'CausalAttention'")),
    "forward-inside-init": (no_forward, ("[Module]", "[Block]")),
    "point-for-a-comma": (lambda: SQUARE.masked_fill(SQUARE == -1e9), ("", "")),
    "heads-that-do-not-divide": (lambda: torch.zeros(384).reshape(1, 6, 7, 9), ("", "")),
    "heads-in-pytorchs-module": (lambda: nn.MultiheadAttention(10, 3), ("", "")),
    "text-longer-than-the-table": (
        lambda: F.embedding(torch.tensor(9), torch.zeros(8, 2)),
        ("", ""),
    ),
}


@cases("name", CAUSES)
def test_the_message_is_the_one_that_the_cause_gives(name) -> None:
    cause, (here, there) = CAUSES[name]
    with pytest.raises(Exception) as told:  # noqa: PT011 - which one it is, is the question
        cause()
    piece = failing_code()[name]
    outcome = piece.run(piece.wrong)
    assert outcome.kind == told.typename
    assert outcome.message == str(told.value).replace(here, there)


def test_a_name_that_is_not_there_and_a_batch_of_pads_are_told_too() -> None:
    misspelt = failing_code()["misspelt-mask"]
    outcome = misspelt.run(misspelt.wrong)
    assert outcome.kind == "NameError"
    assert "'maks'" in outcome.message
    pads = failing_code()["only-pads"]
    outcome = pads.run(pads.wrong)
    assert outcome.kind == "RuntimeError"
    assert "constituent tensor" in outcome.message
    assert not pads.run(pads.wrong, {"real_tokens": 1}).failed
    alone = failing_code()["only-pads-in-one-layer"]
    assert alone.run(alone.wrong).is_nan
    mended = alone.run(alone.mended)
    assert not mended.result.any()


def test_every_piece_is_tried_here() -> None:
    assert {piece.name for piece in PIECES} == {
        *CAUSES,
        "misspelt-mask",
        "only-pads",
        "only-pads-in-one-layer",
    }


@cases("piece", PIECES)
def test_the_mended_code_runs_at_every_corner_of_the_sizes(piece) -> None:
    opened = piece.run(piece.mended)
    assert not opened.failed
    assert piece.run(piece.wrong).failed or piece.run(piece.wrong).is_nan
    bounds = [(size.lowest, size.highest) for size in piece.sizes.values()]
    for corner in product(*bounds):
        sizes = dict(zip(piece.sizes, corner, strict=True))
        outcome = piece.run(piece.mended, sizes)
        assert not outcome.failed, (sizes, outcome.message)
        assert not outcome.is_nan


def test_the_mended_attention_is_pytorchs() -> None:
    piece = failing_code()["transpose-of-a-batch"]
    result = piece.run(piece.mended).result
    x = torch.linspace(-1, 1, 96).view(2, 6, 8)
    assert result is not None
    assert torch.allclose(result, F.scaled_dot_product_attention(x, x, x), atol=1e-6)


def test_sizes_that_happen_to_fit_give_wrong_numbers_without_a_message() -> None:
    piece = failing_code()["values-transposed"]
    wrong, mended = (piece.run(code, {"width": 6}).result for code in (piece.wrong, piece.mended))
    assert wrong is not None
    assert mended is not None
    assert not torch.allclose(wrong, mended)


def test_what_is_shown_is_what_runs() -> None:
    piece = failing_code()["heads-that-do-not-divide"]
    names: dict[str, torch.Tensor] = {}
    exec(piece.shown(piece.mended, {"heads": 12}), names)
    ran = piece.run(piece.mended, {"heads": 12}).result
    assert ran.shape == (1, 8, 6, 8)
    assert torch.equal(names["result"], ran)


@cases("heads", [0, 65, -1, 2.5, "7; import os", True, None])
def test_only_whole_numbers_within_the_bounds_are_run(heads) -> None:
    piece = failing_code()["heads-that-do-not-divide"]
    with pytest.raises(ValueError, match="must be a whole number from 1 to 64"):
        piece.run(piece.wrong, {"heads": heads})  # type: ignore[dict-item]
