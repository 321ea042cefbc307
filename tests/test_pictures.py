"""The published pictures keep their colours, which mean something."""

import io

import numpy as np
from PIL import Image

from tools.screens import compact


def test_a_picture_of_a_page_keeps_all_its_colours() -> None:
    drawn = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    png = io.BytesIO()
    Image.fromarray(drawn).save(png, "PNG")
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(compact(png.getvalue())))), drawn)
