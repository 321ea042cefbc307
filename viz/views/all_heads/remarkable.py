"""What stands out in this text: the findings of a scan by all methods, each with its check and a link."""

import html
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from model.analysis.findings import Finding, Scan, scanning
from model.trace.trace import Trace
from viz.notation.numbers import difference
from viz.shell.background import Offer, Passes, passes_or_offer
from viz.shell.panel import Caption, Panel
from viz.state.look import Look, traced
from viz.state.navigation import html_link, read_address

if TYPE_CHECKING:
    from model.run.model import Model

_STYLE = """<style>
.findings { margin: 0; padding-inline-start: 1.6rem; }
.findings li { padding-block: 0.45rem; font-size: 18px; }
.findings small { display: block; color: var(--quiet); font-size: 13px; }
.findings a { color: var(--strong); margin-inline-start: 0.75rem; }
</style>"""


def what_stands_out(look: Look) -> Panel:
    """The findings as a ranked list, once every head has had its pass."""
    trace = traced(replace(look.request, full=True))
    heads = sum(attention.heads for attention in trace.attention)
    length = len(trace.tokens) + len(trace.target_tokens)
    offer = Offer(
        "all-heads-scan",
        f"All {heads} heads, all tokens and the largest numbers of this text are scanned: one pass for each "
        "head without it, and a few more.",
        "Scan this text",
        "heads",
        "left out",
        heads,
        heads * length * look.model.parameter_count,
    )
    run = passes_or_offer((offer.name, look.request), partial(_work, look.model, trace), offer)
    panel = Panel("all-heads-scan")
    if run is None or run.found is None or not run.complete:
        return panel
    return replace(
        panel,
        picture=partial(_listed, run.found.findings),
        below=[
            Caption(
                "Ranked by how far each lies from the median of its like (all heads, all tokens, all "
                "numbers), in median absolute deviations. Where a head looks is told by its weights; what it "
                "does, by a pass without it. The check computes each number a second time in another way."
            )
        ],
    )


def _listed(findings: tuple[Finding, ...]) -> None:
    st.html(f'{_STYLE}<ol class="findings">{"".join(map(_entry, findings))}</ol>')


def _entry(finding: Finding) -> str:
    page, parameters = read_address(finding.link)
    shown = html_link(page.file, "See it →", parameters)
    return (
        f"<li>{html.escape(finding.sentence)}<small>{finding.stands_out:,.0f} deviations from the median; "
        f"check: largest difference {difference(finding.check)}{shown}</small></li>"
    )


def _work(model: "Model", trace: Trace, run: Passes[Scan]) -> Iterator[Scan]:
    return scanning(model, trace, run.turn)
