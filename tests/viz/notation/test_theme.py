"""Colours mean one thing, stand in one place, can be read, and fit both kinds of page."""

import re
import tomllib
from pathlib import Path

import plotly.graph_objects as go

from tests.cases import cases
from viz.figures.chart import on_white
from viz.notation.theme import (
    PAGE,
    PAPER,
    QUANTITIES,
    chart_colours,
    colorscale,
    rgba,
    weight_steps,
)

REPOSITORY = Path(__file__).resolve().parents[3]
CONFIG = REPOSITORY / ".streamlit" / "config.toml"


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_no_colour_of_python_stands_anywhere_but_in_the_theme() -> None:
    written = {
        f"{path.relative_to(REPOSITORY)}: {colour}"
        for room in ("viz", "pages", "model")
        for path in (REPOSITORY / room).rglob("*.py")
        if path.name != "theme.py"
        for colour in re.findall(r"[\"'>:( ](#[0-9A-Fa-f]{6})\b", path.read_text())
    }
    assert written == {"viz/notation/labels.py: #000001"}  # of a sentence about Streamlit


def test_the_colours_of_styles_are_the_themes_but_for_the_greys_of_the_two_shells() -> None:
    known = set(
        re.findall(r"#[0-9a-f]{6}", (REPOSITORY / "viz/notation/theme.py").read_text().lower())
    )
    shells = ("viz/shell/style.css", "viz/site/css/site.css")
    known |= {
        colour
        for shell in shells
        for line in (REPOSITORY / shell).read_text().splitlines()
        if re.match(r"  --(ink|quiet|probability|strong|line|paper|plate|lit):", line)
        for colour in re.findall(r"#[0-9a-f]{6}", line)
    }
    written = {
        f"{path.relative_to(REPOSITORY)}: {colour}"
        for path in (REPOSITORY / "viz").rglob("*.css")
        if "bundled" not in path.parts
        for colour in re.findall(r"#[0-9a-fA-F]{6}", path.read_text())
        if colour.lower() not in known
    }
    assert written == set()


def test_letters_in_a_quantitys_ink_can_be_read_on_the_page() -> None:
    for quantity in QUANTITIES.values():
        for ink, page in zip(quantity.ink, ("#FFFFFF", "#16161A"), strict=True):
            assert contrast(ink, page) >= 4.5, ink


def test_a_scale_starts_at_the_page_and_moves_away_from_it() -> None:
    for quantity in QUANTITIES.values():
        for stops in (quantity.light, quantity.dark):
            places = [place for place, _ in stops]
            assert (places[0], places[-1]) == (0, 1)
            assert places == sorted(places)
            assert [place for place, colour in stops if colour == PAGE] == [
                0.5 if quantity.diverging else 0.0
            ]
        lightness = [luminance(colour) for _, colour in quantity.light if colour != PAGE]
        half = len(lightness) // 2 if quantity.diverging else 0
        assert lightness[half:] == sorted(lightness[half:], reverse=True)
        assert lightness[:half] == sorted(lightness[:half])
    assert len({quantity.hue for quantity in QUANTITIES.values()}) == len(QUANTITIES)


def test_plotly_takes_every_colour_scale_and_its_zero_shows_the_page() -> None:
    for name, quantity in QUANTITIES.items():
        scale = colorscale(name)
        go.Heatmap(z=[[0, 1]], colorscale=scale)  # refuses a scale it cannot read
        if quantity.diverging:
            assert all(str(colour).endswith(",0)") for place, colour in scale if place == 0.5)
        else:
            assert scale[0] == [0.0, PAPER]


@cases("theme", ["light", "dark"])
def test_a_page_draws_the_strong_ends_and_the_steps_of_the_weights_in_its_own_theme(theme) -> None:
    written = tomllib.loads(CONFIG.read_text())["theme"][theme]
    assert written["chartCategoricalColors"] == chart_colours(theme)
    assert written["chartSequentialColors"] == weight_steps(theme)
    assert weight_steps(theme)[-1] == getattr(QUANTITIES["weight"], theme)[-1][1]
    assert all(contrast(end, written["backgroundColor"]) > 4.5 for end in chart_colours(theme))


def test_a_file_has_no_colour_left_for_the_page_to_fill() -> None:
    for name, quantity in QUANTITIES.items():
        heatmap = go.Heatmap(z=[[0, 1]], colorscale=colorscale(name))
        figure = go.Figure(heatmap, {"font": {"color": PAPER}, "template": "none"})
        assert figure.to_json().count("#0000") > 1
        drawn = on_white(figure).update_layout(template="none").to_json()
        assert "#0000" not in drawn
        assert quantity.light[-1][1] in drawn
        assert "#FFFFFF" in drawn


def test_an_opacity_joins_a_colour() -> None:
    assert re.fullmatch(r"rgba\(0,114,178,0.25\)", rgba("#0072B2", 0.25))
