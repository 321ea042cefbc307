"""The listing as HTML: each line with its number, its shape, and a link to the page with its numbers."""

import html
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from model.code.listing import Length, Line
from viz.shell.frame import PAGES

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


def listing_html(
    listed: Iterable[Line], lengths: Mapping[Length, int], link: Callable[[Line], str] | None
) -> str:
    """link: the attributes of a link to the page with a line's numbers; None: lines lead nowhere."""
    rows = "".join(_row(line, lengths, link) for line in listed)
    return f'<ol class="listing" aria-label="The model as code">{rows}</ol>'


def lit_style(listed: Iterable[Line]) -> str:
    """The style by which lines and blocks of the map light each other."""
    parts = sorted({line.part for line in listed if line.part is not None})
    return f"<style>{''.join(map(_LIT.format, parts))}</style>"


def _row(line: Line, lengths: Mapping[Length, int], link: Callable[[Line], str] | None) -> str:
    part = f' class="part-{line.part}"' if line.part else ""
    bare = line.code.lstrip()
    code, shape = coloured(bare), html.escape(line.shaped(lengths))
    if line.shape is not None and link is not None:
        code = f"<a {link(line)}>{code}</a>"
    room = " " * (len(line.code) - len(bare))
    return f"<li{part}><code>{room}{code}</code><span>{shape}</span></li>"


def page_of(line: Line) -> str:
    """The file of the page with a line's numbers."""
    return PAGES[line.part or "tokens"]


def coloured(code: str) -> str:
    """HTML: a line of Python, with its words and texts in their colours."""
    made, done = [], 0
    for found in _COLOURED.finditer(code):
        made.append(html.escape(code[done : found.start()]))
        made.append(f'<b class="{found.lastgroup}">{html.escape(found[0])}</b>')
        done = found.end()
    return "".join([*made, html.escape(code[done:])])
