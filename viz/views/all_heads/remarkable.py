"""What stands out in this text: the findings of a scan by all methods, each with its check and a link."""

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.analysis.findings import Finding, Scan, scanning
from model.trace.blocks import in_blocks
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.figures.svg import marked_bars, rows_of, thumbnail
from viz.notation.numbers import difference, signed
from viz.notation.theme import LESS, MORE, PROBABILITY, STREAM, WEIGHT
from viz.notation.words import sentences_of
from viz.shell.background import Offer, Passes, passes_or_offer
from viz.shell.panel import Caption, Panel
from viz.state.look import Look
from viz.state.navigation import html_link, read_address

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("all_heads.remarkable")

MAPS = 64  # heads whose maps are shown while they are left out, at most
CELLS = 24  # rows and columns of a small map, at most
HUES: Mapping[str, str] = {
    "surprise": PROBABILITY,
    "needed": MORE,
    "in the way": LESS,
    "looks": WEIGHT,
    "first token": WEIGHT,
    "number": STREAM,
    "edge": MORE,
}
LIKE = {"surprise": "tokens", "number": say("numbers_vector")}  # else heads
_STYLE = (Path(__file__).with_name("findings.css")).read_text(encoding="utf-8")


def what_stands_out(look: Look) -> Panel:
    """The findings as a ranked list, once every head has had its pass."""
    trace = look.trace
    heads = sum(attention.heads for attention in trace.attention)
    length = len(trace.tokens) + len(trace.target_tokens)
    offer = Offer(
        "all-heads-scan",
        say("heads_tokens_largest", heads=heads),
        "Scan this text",
        "heads",
        "left out",
        heads,
        heads * length * look.model.parameter_count,
    )
    run = passes_or_offer(
        (offer.name, look.request),
        partial(_work, look.model, trace),
        offer,
        partial(_sought, cache(partial(_maps, look)), heads),
    )
    panel = Panel("all-heads-scan")
    if run is None or run.found is None or not run.complete:
        return panel
    findings = run.found.findings
    return replace(
        panel,
        look_for=say("findings_first_lies", findings=len(findings)),
        picture=partial(_listed, look, findings),
        below=[Caption(say("ranked_far_lies"))],
    )


def _sought(maps: Callable[[], str], heads: int, run: Passes[Scan]) -> None:
    """What stands in the picture's place while the passes run: the maps of the heads, in full colour those
    that have been left out."""
    st.markdown(say("model_reads_text", heads=heads))
    if heads > MAPS:
        return
    done = 0 if run.found is None else run.found.done
    rule = f".sought .frame:nth-child(n + {done + 1}) {{ opacity: 0.3 }}"
    st.html(
        f'<style>{_STYLE}{rule}</style><div class="findings-place"><div class="sought">{maps()}</div></div>'
    )


def _maps(look: Look) -> str:
    return "".join(
        _map(look, {"place": attention.place.name, "head": str(head)})
        for attention in look.trace.attention
        for head in range(attention.heads)
    )


def _listed(look: Look, findings: tuple[Finding, ...]) -> None:
    entries = "".join(_entry(look, one) for one in findings)
    listed = f'<ol class="findings">{entries}</ol>'
    st.html(f'<style>{_STYLE}</style><div class="findings-place listing">{listed}</div>')


def _entry(look: Look, finding: Finding) -> str:
    page, parameters = read_address(finding.link)
    shown = html_link(page.file, "See it →", parameters)
    value, like = finding.among[finding.at], LIKE.get(finding.kind, "heads")
    form = "+.2f" if finding.kind in ("needed", "in the way", "edge") else ".2f"
    number = signed(f"{value:,.0f}" if abs(value) >= 100 else format(value, form))
    apart = say("deviations_median", stands_out=finding.stands_out)
    words = f"{number} among {len(finding.among):,} {like}, {apart}"
    bars = marked_bars(np.array(finding.among), finding.at, HUES[finding.kind])
    check = f"✓\N{NO-BREAK SPACE}{difference(finding.check)}"
    rest = f"{html.escape(words.removeprefix(number))}. {check}&nbsp;&nbsp; {shown}"
    return (
        f'<li><div class="pictures">{_map(look, parameters)}'
        f'<img class="bars" src="{bars}" alt="{html.escape(words)}"></div><div>'
        f"<p>{html.escape(finding.sentence)}</p><small><b>{number}</b>{rest}</small></div></li>"
    )


def _map(look: Look, parameters: Mapping[str, str]) -> str:
    """The weights of the head that a finding is about; nothing where it is about none."""
    if "place" not in parameters:
        return ""
    attention, head = look.trace.find(parameters["place"]), int(parameters["head"])
    block = tuple(-(-size // CELLS) for size in attention.sizes[1:])
    weights = in_blocks(attention, (block[0], block[1]), partial(Attention.weights, head=head))
    name = html.escape(attention.place.head(head))
    mask = thumbnail(rows_of(weights))
    return (
        f'<span class="frame" role="img" aria-label="Weights of {name}">'
        f'<i class="map" style="--map:url({mask})"></i></span>'
    )


def _work(model: "Model", trace: Trace, run: Passes[Scan]) -> Iterator[Scan]:
    return scanning(model, trace, run.turn)
