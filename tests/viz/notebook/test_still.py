"""Where no widget can be shown, its picture stands for it."""

import base64
import re
import zlib
from typing import Any

import numpy as np

from model import load_model
from viz.notebook import show
from viz.notebook.still import _palette

PLACE = "decoder.1.self"


def test_without_widgets_the_weights_of_the_head_are_a_picture() -> None:
    trace = load_model("house-gpt").trace("The cat sat on the mat")
    widget = show(trace, place=PLACE, head=3)
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    html = data["text/html"]
    assert f"weight {widget.weight:.4f}" in html
    (svg,) = re.findall(r"svg\+xml;base64,([\w+/=]+)", html)
    picture = base64.b64decode(svg).decode()
    assert all(f">{label}<" in picture for label in ("The", "·cat", "·sat", "·on", "·the", "·mat"))
    np.testing.assert_array_equal(
        pixels(picture), np.rint(trace.find(PLACE).weights(3) * 255).astype(np.uint8)
    )


def pixels(picture: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The levels of the PNG inside an SVG."""
    (found,) = re.findall(r"png;base64,([\w+/=]+)", picture)
    png = base64.b64decode(found)
    columns, rows = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    start = png.index(b"IDAT")
    length = int.from_bytes(png[start - 4 : start], "big")
    lines = zlib.decompress(png[start + 4 : start + 4 + length])
    return np.frombuffer(lines, np.uint8).reshape(rows, columns + 1)[:, 1:]


def test_a_picture_of_a_long_text_stays_small() -> None:
    trace = load_model("house-gpt").trace("the cat sat on the mat and " * 30)
    html = show(trace)._repr_mimebundle_()[0]["text/html"]
    assert len(html) < 60_000


def test_the_colours_of_weights_begin_at_white_and_grow_darker() -> None:
    colours = np.frombuffer(_palette(), np.uint8).reshape(256, 3).astype(int).sum(1)
    assert colours[0] == 3 * 255
    assert (np.diff(colours) <= 0).all()


def test_a_token_never_becomes_markup() -> None:
    trace = load_model("house-gpt").trace('<img src=x onerror="alert(1)"> & so on')
    html = show(trace)._repr_mimebundle_()[0]["text/html"]
    assert html.count("<img") == 1
    (svg,) = re.findall(r"svg\+xml;base64,([\w+/=]+)", html)
    assert "<img" not in base64.b64decode(svg).decode()
