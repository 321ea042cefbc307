"""Colours mean one thing, can be read, and fit both kinds of page."""

import re
import tomllib
from pathlib import Path
from typing import Literal

import plotly.graph_objects as go
import pytest

from viz.notation.theme import (
    PAGE,
    PAPER,
    QUANTITIES,
    QuantityName,
    chart_colours,
    colorscale,
    printed,
    rgba,
    weight_steps,
)

CONFIG = Path(__file__).resolve().parents[3] / ".streamlit" / "config.toml"
NAMES: tuple[QuantityName, ...] = tuple(QUANTITIES)


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("which", "page"), [(0, "#FFFFFF"), (1, "#16161A")])
def test_letters_in_a_quantitys_ink_can_be_read_on_the_page(
    name: QuantityName, which: int, page: str
) -> None:
    assert contrast(QUANTITIES[name].ink[which], page) >= 4.5


@pytest.mark.parametrize("name", NAMES)
def test_a_scale_starts_at_the_page_and_moves_away_from_it(name: QuantityName) -> None:
    quantity = QUANTITIES[name]
    for stops in (quantity.light, quantity.dark):
        places = [place for place, _ in stops]
        assert places[0] == 0
        assert places[-1] == 1
        assert places == sorted(places)
        assert [place for place, colour in stops if colour == PAGE] == [
            0.5 if quantity.diverging else 0.0
        ]
    lightness = [luminance(colour) for _, colour in quantity.light if colour != PAGE]
    half = len(lightness) // 2 if quantity.diverging else 0
    assert lightness[half:] == sorted(lightness[half:], reverse=True)
    assert lightness[:half] == sorted(lightness[:half])


@pytest.mark.parametrize("name", NAMES)
def test_plotly_takes_every_colour_scale_and_its_zero_shows_the_page(name: QuantityName) -> None:
    scale = colorscale(name)
    go.Heatmap(z=[[0, 1]], colorscale=scale)  # refuses a scale it cannot read
    if QUANTITIES[name].diverging:
        assert all(str(colour).endswith(",0)") for place, colour in scale if place == 0.5)
    else:
        assert scale[0] == [0.0, PAPER]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_draws_the_strong_ends_and_the_steps_of_the_weights_in_its_own_theme(
    theme: Literal["light", "dark"],
) -> None:
    written = tomllib.loads(CONFIG.read_text())["theme"][theme]
    assert written["chartCategoricalColors"] == chart_colours(theme)
    assert written["chartSequentialColors"] == weight_steps(theme)
    assert weight_steps(theme)[-1] == getattr(QUANTITIES["weight"], theme)[-1][1]
    assert all(contrast(end, written["backgroundColor"]) > 4.5 for end in chart_colours(theme))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_no_colour_left_for_the_page_to_fill(name: QuantityName) -> None:
    heatmap = go.Heatmap(z=[[0, 1]], colorscale=colorscale(name))
    drawn = go.Figure(heatmap, {"template": "none"}).to_json()
    assert "#0000" in drawn
    assert "#0000" not in printed(drawn)
    assert QUANTITIES[name].light[-1][1] in printed(drawn)
    assert printed(f'"{PAPER}"') == '"#FFFFFF"'


def test_all_hues_differ() -> None:
    assert len({quantity.hue for quantity in QUANTITIES.values()}) == len(QUANTITIES)


def test_an_opacity_joins_a_colour() -> None:
    assert re.fullmatch(r"rgba\(0,114,178,0.25\)", rgba("#0072B2", 0.25))
