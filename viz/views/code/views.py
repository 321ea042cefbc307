"""What the page of the model as code shows: the listing with links to the pages with its numbers, its check,
and what can be taken away."""

import html
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import streamlit as st

from model.code.check import NamedWeights, checked_difference
from model.code.listing import CodeLine, Length, lines
from model.code.script import lengths, model_script, printed, stem, weights_of
from model.serving.engine import Request
from model.system.settings import MEGABYTE
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.frame import PAGES
from viz.shell.pictures import look_for
from viz.state.link import to_link
from viz.state.look import Look, loaded, traced
from viz.state.navigation import leading_to
from viz.state.session import carried_link, current

say = sentences_of("code.views")

STYLE = Path(__file__).with_name("listing.css")
_COLOURED = re.compile(
    r"""(?P<text>f?"{3}.*?"{3}|f?".*?")|(?P<note>#.*)|(?P<word>\b(?:def|return|for|in|if|is|import|from)\b)"""
)
# A line lights its block of the map above, and a block its lines.
_LIT = """
.stApp:has(.listing .part-{0}:is(:hover, :focus-within)) .st-key-model-map [data-kind="{0}"] {{
  --filled: var(--strong); --said: var(--paper);
}}
.stApp:has(.st-key-model-map [data-kind="{0}"]:is(:hover, :focus-visible)) .listing .part-{0} {{
  background: var(--lit);
}}
"""
DOWNLOADED = 128 * MEGABYTE  # of weights; more are written by a command


def model_as_code(look: Look) -> None:
    """The listing at the left; what it gives and what can be taken away at the right."""
    attention, weights = look.attention, None
    try:
        weights = look.model.module.named_weights()
        listed = lines(look.model.config, weights, attention.place)
        off = _checked(look.request)
    except ValueError as refusal:
        st.info(plain(say("cannot_written_code", look=look.title, rstrip=str(refusal).rstrip("."))))
        if weights is not None:  # for the scripts of single stages
            _offer_weights(look, weights)
        return
    written = sum(bool(line.code.strip()) for line in listed)
    look_for(say("whole_model_lines", lines=written, tokens=len(look.trace.tokens)))
    with st.container(horizontal=True, gap="large", key="model-as-code"):
        code, side = st.container(key="listing"), st.container(key="listing-side")
    link = _link()
    with code:
        st.html(STYLE)
        parts = sorted({line.part for line in listed if line.part is not None})
        st.html(f"<style>{''.join(map(_LIT.format, parts))}</style>")
        st.html(listing_html(listed, lengths(look.trace, attention.name), link))
    with side:
        _about(look, leads=link is not None)
        logits = "" if look.trace.prediction is None else say("last_token_logits")
        st.caption(say("check_weights_listing", logits=logits, off=off))
        with st.container(key="code-to-take"):
            _take_away(look, weights)


@lru_cache(maxsize=64)
def _checked(request: Request) -> float:
    """How far the listing's numbers are from those of a request's trace: half a second for a long text."""
    model = loaded(request.model)
    return checked_difference(model, traced(request))


def _link() -> Callable[[CodeLine], str] | None:
    """A link to the page with a line's numbers. None where a link cannot carry the whole view: it opens
    a session of its own, which would begin with another sentence."""
    carried = carried_link()
    if carried != to_link(replace(current(), show="")):
        return None

    def link(line: CodeLine) -> str:
        stage = {"stage": line.stage} if line.stage else {}
        return leading_to(PAGES[line.part or "tokens"], carried | stage)

    return link


def _about(look: Look, *, leads: bool) -> None:
    """leads: whether lines lead to the pages with their numbers."""
    led = say("such_line_leads") if leads else say("point_such_line")
    st.markdown(say("whole_open_model", led=led))
    if look.model.config.shape == "encoder-decoder":
        st.caption(say("function_serves_three"))


def _take_away(look: Look, weights: NamedWeights) -> None:
    """The script, the file of weights that it reads, and what it prints."""
    opened_model, name = look.model.name, stem(look.model)
    script = model_script(look.model, look.trace, weights)
    with st.container(horizontal=True):
        st.download_button(
            "Script",
            script,
            file_name=f"{name}.py",
            mime="text/x-python",
            icon=":material/download:",
            on_click="ignore",
        )
        size = _offer_weights(look, weights)
    if size > DOWNLOADED:
        st.caption(say("weights_take_mb", size=size / MEGABYTE))
        command = say("python_m_model_code", quote=shlex.quote(opened_model))
        st.code(command, language=None, wrap_lines=True)
    st.markdown(say("folder_python_py", name=name))
    st.code(printed(look.model, look.trace), language=None)
    opened = st.expander(say("script_copy"), key="code-script", on_change="rerun")
    if opened.open:
        opened.code(script, language="python")


def _offer_weights(look: Look, weights: NamedWeights) -> int:
    """The button that saves them, where they are not too many. Returns their bytes."""
    size, name = sum(weight.nbytes for weight in weights.values()), look.model.name
    if size <= DOWNLOADED:
        st.download_button(
            f"Weights, {max(size / MEGABYTE, 0.1):.1f} MB",
            lambda: weights_of(loaded(name)),
            file_name=f"{stem(look.model)}.safetensors",
            mime="application/octet-stream",
            key="code-save-weights",
            icon=":material/download:",
            on_click="ignore",
        )
    return size


def listing_html(
    listed: Iterable[CodeLine],
    lengths: Mapping[Length, int],
    link: Callable[[CodeLine], str] | None,
) -> str:
    """The listing as HTML: each line with its number, its shape, and a link to the page with its numbers.

    link: the attributes of such a link; None: lines lead nowhere.
    """
    rows = []
    for line in listed:
        part = f' class="part-{line.part}"' if line.part else ""
        bare = line.code.lstrip()
        code = coloured(bare)
        if line.shape is not None and link is not None:
            code = f"<a {link(line)}>{code}</a>"
        room = " " * (len(line.code) - len(bare))
        shape = html.escape(line.shaped(lengths))
        rows.append(f"<li{part}><code>{room}{code}</code><span>{shape}</span></li>")
    return f'<ol class="listing" aria-label="The model as code">{"".join(rows)}</ol>'


def coloured(code: str) -> str:
    """HTML: a line of Python, with its words and texts in their colours."""
    pieces, done = [], 0
    for found in _COLOURED.finditer(code):
        pieces.append(html.escape(code[done : found.start()]))
        pieces.append(f'<b class="{found.lastgroup}">{html.escape(found[0])}</b>')
        done = found.end()
    return "".join([*pieces, html.escape(code[done:])])
