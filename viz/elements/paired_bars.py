"""A number of each token, before and after a change, as a table of bars.

It is HTML: the browser draws it at once. Plotly takes long enough to keep the picture above it waiting.
"""

import html
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from viz.notation.labels import token_label
from viz.notation.numbers import fixed
from viz.notation.theme import MASKED, WEIGHT

_STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
_LABEL = 18  # characters of a token
_DECIMALS = 3  # beside a bar; pointing at it shows all that are certain


def paired_bars(
    tokens: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    *,
    unit: str,
    decimals: int,
    end: float | None = None,
) -> None:
    """A row for each token, with a bar of each run. tokens: as the model reads them. unit: of the numbers,
    which are from 0 up. decimals: that are certain. end: the number of a bar as wide as its place; None: the
    largest one.

    Raises ValueError if there is not a number of each run for each token.
    """
    widest = end or max(*before, *after, 0.0) or 1.0
    rows = "".join(
        f'<tr><th scope="row">{html.escape(token_label(token, _LABEL))}</th><td>'
        + "".join(
            _bar(value, value / widest, colour, decimals)
            for value, colour in ((old, MASKED), (new, WEIGHT))
        )
        + "</td></tr>"
        for token, old, new in zip(tokens, before, after, strict=True)
    )
    st.html(
        f'<style>{_STYLE}</style><div class="paired-bars" role="region" tabindex="0" '
        f'aria-label="{html.escape(unit)}, before and after"><table><thead><tr>'
        f'<th scope="col">token</th><td><span>{html.escape(unit)}: '
        f"{_swatch(MASKED)}unchanged {_swatch(WEIGHT)}changed</span></td></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _bar(value: float, share: float, colour: str, decimals: int) -> str:
    return (
        f'<span title="{html.escape(fixed(value, decimals))}"><i style="--share:{share:.4f};--bar:{colour}">'
        f"</i>{html.escape(fixed(value, min(decimals, _DECIMALS)))}</span>"
    )


def _swatch(colour: str) -> str:
    return f'<i style="--bar:{colour}"></i>'
