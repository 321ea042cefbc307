"""Where no widget can be shown, its picture stands for it."""

import base64
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from model import load_model
from viz.notation.theme import weight_colours
from viz.notebook import show

PLACE = "decoder.1.self"
SVG = "{http://www.w3.org/2000/svg}"


def html_of(text: str, **more: object) -> str:
    widget = show(load_model("house-gpt").trace(text), **more)
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert f"weight {widget.weight:.4f}" in data["text/html"]
    return data["text/html"]


def test_the_picture_stands_behind_the_widget_too_which_hides_it_by_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: shown.append(data))
    widget = show(load_model("house-gpt").trace("The cat sat on the mat"), place=PLACE, head=3)
    widget._ipython_display_()
    alive, still = shown
    assert "application/vnd.jupyter.widget-view+json" in alive
    assert alive["text/html"] == ""  # where no widget is drawn there is one picture, not two
    assert f'data-attention-still="{widget._run}"' in still["text/html"]
    assert picture_of(still["text/html"]).tag == f"{SVG}svg"


def picture_of(html: str) -> ElementTree.Element:
    (svg,) = re.findall(r"svg\+xml;base64,([\w+/=]+)", html)
    return ElementTree.fromstring(base64.b64decode(svg))


def test_without_widgets_the_weights_of_the_head_are_a_picture() -> None:
    text = "The cat sat on the mat"
    picture = picture_of(html_of(text, place=PLACE, head=3))
    labels = {label.text for label in picture.iter(f"{SVG}text")}
    assert labels >= {"The", "·cat", "·sat", "·on", "·the", "·mat"}
    weights = load_model("house-gpt").trace(text).find(PLACE).weights(3)
    shades = weight_colours("light", np.linspace(0, 1, 65).tolist())
    drawn = np.zeros(weights.shape)
    for path in picture.iter(f"{SVG}path"):
        for column, row in re.findall(r"M(\d+) (\d+)h1v1h-1z", path.get("d", "")):
            drawn[int(row), int(column)] = shades.index(path.get("fill", "")) / 64
    np.testing.assert_allclose(drawn, weights, atol=0.5 / 64 + 1e-6)


def test_a_picture_of_a_long_text_stays_small() -> None:
    assert len(html_of("the cat sat on the mat and " * 30)) < 60_000


def test_the_colours_of_weights_begin_at_white_and_grow_darker() -> None:
    shades = weight_colours("light", np.linspace(0, 1, 65).tolist())
    sums = [sum(bytes.fromhex(shade[1:])) for shade in shades]
    assert sums[0] == 3 * 255
    assert len(set(shades)) == 65
    assert sums == sorted(sums, reverse=True)


def test_a_token_never_becomes_markup() -> None:
    html = html_of('<img src=x onerror="alert(1)"> & so on')
    assert html.count("<img") == 1
    assert not list(picture_of(html).iter(f"{SVG}img"))
