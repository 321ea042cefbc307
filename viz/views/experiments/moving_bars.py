"""A number of each token as a table of bars, which move from what they were before a change. It is HTML: the
browser draws it at once, and moves it without the server."""

import html
from collections.abc import Sequence

import streamlit as st

from viz.notation.numbers import fixed


def moving_bars(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float] | None = None,
    *,
    unit: str,
    end: float | None = 1.0,
    most: int | None = None,
    heads: tuple[str, str] = ("was", "now"),
) -> None:
    """A row for each label, from top to bottom.

    Args:
        labels: of tokens, or other words.
        before, after: a number for each, from 0 up. Without a change `before` alone is drawn.
        unit: what the numbers are.
        end: the number of a bar as wide as its place; None: the largest one.
        most: the row that stands out.
        heads: of the two columns of numbers.
    """
    now = before if after is None else after
    widest = end or max(*before, *now, 0.0) or 1.0
    rows = "".join(
        _row(number, label, (old / widest, new / widest), (old, new), after is not None, most)
        for number, (label, old, new) in enumerate(zip(labels, before, now, strict=True))
    )
    columns = "".join(
        f"<td>{html.escape(head)}</td>" for head in (heads if after is not None else ("",))
    )
    st.html(
        f'<div class="moving" style="--rows:{len(labels)}" role="region" tabindex="0" '
        f'aria-label="{html.escape(unit)}"><table>'
        f"<thead><tr><th></th><td>{html.escape(unit)}</td>{columns}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(
    number: int,
    label: str,
    shares: tuple[float, float],
    values: tuple[float, float],
    is_changed: bool,
    most: int | None,
) -> str:
    (start, share), (was, now) = shares, values
    ghost = f'<i class="was" style="--share:{start:.4f}"></i>' if is_changed else ""
    before = f'<td class="number was">{fixed(was, 2)}</td>' if is_changed else ""
    style = f"--share:{share:.4f};--from:{start if is_changed else 0:.4f};--row:{min(number, 24)}"
    return (
        f"<tr{' class=most' if number == most else ''}>"
        f'<th scope="row">{html.escape(label)}</th>'
        f'<td class="bar">{ghost}<i class="now" style="{style}"></i></td>'
        f'{before}<td class="number">{fixed(now, 2)}</td></tr>'
    )
