"""The published pictures show queries, keys and values in the colours that mean them."""

import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageSequence

from tools.screens import compact
from viz.notation.theme import QUANTITIES, QuantityName

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = (DOCS / "explore.png",)
NAMES: tuple[QuantityName, ...] = ("query", "key", "value")
ROUNDING = 2  # of 255
FEW = 30  # pixels: the stages' small pictures have hundreds of cells


def strong(quantity: QuantityName, dark: bool) -> NDArray[np.float64]:
    """(step, channel): the upper end of a quantity's scale, which no other quantity comes near."""
    stops = QUANTITIES[quantity].dark if dark else QUANTITIES[quantity].light
    first, last = (
        np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) for _, colour in stops[-2:]
    )
    return first + (last - first) * np.linspace(0.3, 1, 24)[:, None]


def colours_of(picture: Image.Image) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(colour, channel), and how many pixels have each."""
    channels = np.asarray(picture.convert("RGB")).astype(np.int64)
    packed, counts = np.unique(channels @ [1 << 16, 1 << 8, 1], return_counts=True)
    return np.stack([packed >> 16, packed >> 8 & 255, packed & 255], -1).astype(float), counts


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_queries_keys_and_values_have_their_own_colours(path: Path) -> None:
    with Image.open(path) as picture:
        for frame in ImageSequence.Iterator(picture):
            colours, counts = colours_of(frame)
            for name in NAMES:
                scale = strong(name, "dark" in path.name)
                apart = np.abs(colours[:, None] - scale).max(-1).min(-1)
                assert counts[apart <= ROUNDING].sum() >= FEW, name


def test_a_picture_of_a_page_keeps_all_its_colours() -> None:
    drawn = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    png = io.BytesIO()
    Image.fromarray(drawn).save(png, "PNG")
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(compact(png.getvalue())))), drawn)
