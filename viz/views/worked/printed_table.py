"""What the notes print for a step, as an HTML table with the errata marked. Pure."""

import html

import numpy as np

from model.worked.example import Step
from model.worked.notes import NOTHING
from viz.figures.cells import labels
from viz.notation.numbers import DECIMALS, numbers
from viz.notation.theme import ERRATUM, rgba

STYLE = f"""<style>
.printed {{ overflow-x: auto; padding: 0 0.2rem 0.3rem; }}
.printed table {{ border-collapse: collapse; font-size: 0.85rem; }}
.printed caption {{ text-align: left; opacity: 0.75; padding-bottom: 0.25rem; }}
.printed th, .printed td {{ padding: 0.15rem 0.55rem; text-align: right; font-family: monospace; }}
.printed th {{ font-weight: 400; opacity: 0.75; }}
.printed td.erratum {{ outline: 2px solid {ERRATUM}; background: {rgba(ERRATUM, 0.12)}; }}
.printed td.erratum span {{ display: block; font-weight: 700; }}
</style>"""


def printed_table(step: Step) -> str:
    """The figures as the notes print them; under a wrong one, what the arithmetic gives.

    A cell that the notes leave out is empty. "" where they print nothing for this step.
    """
    if step.notes is None or step.differing is None:
        return ""
    values = np.atleast_2d(step.result)
    figures = np.array(step.notes.figures).reshape(values.shape).tolist()
    differing = step.differing.reshape(values.shape)
    head = labels(step.columns, values.shape[1], alone=step.result.ndim == 0)
    sides = labels(step.rows, len(values), alone=step.result.ndim < 2)
    decimals = np.array(step.notes.decimals).reshape(values.shape).tolist()
    written = numbers(values)
    body = "".join(
        f'<tr><th scope="row">{html.escape(side)}</th>'
        + "".join(
            map(_cell, figures[row], values[row], written[row], decimals[row], differing[row])
        )
        + "</tr>"
        for row, side in enumerate(sides)
    )
    heading = "".join(f'<th scope="col">{html.escape(label)}</th>' for label in head)
    caption = "As printed" + ("" if step.agrees else ", and under it what the arithmetic gives")
    return (
        f'{STYLE}<div class="printed"><table><caption>{caption}</caption>'
        f"<tr><td></td>{heading}</tr>{body}</table></div>"
    )


def _cell(figure: str, value: float, written: str, decimals: int, differs: np.bool_) -> str:
    """One figure; under a wrong one the value, to at least as many decimals as are printed."""
    if not differs:
        return f"<td>{'' if figure == NOTHING else html.escape(figure)}</td>"
    shown = f"{value:.{decimals}f}" if decimals > DECIMALS else written
    return f'<td class="erratum"><s>{html.escape(figure)}</s><span>{html.escape(shown)}</span></td>'
