"""What the browser needs once a page, whatever is shown: the explorer's script, style sheets and skeletons,
and KaTeX with its fonts. All of it lies in this installation, so nothing is fetched."""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

import ipywidgets
import traitlets

from viz.explorer import bundle

_ROOM = Path(__file__).parent
_KATEX = _ROOM.parents[1] / "static" / "katex"
_PICKER = _ROOM.parent / "shell" / "head_picker" / "picker.html"
_FONTS = re.compile(
    r"KaTeX_(?:Main-(?:Regular|Bold)|Math-Italic|Size\d-Regular)"
)  # of our formulas
_FONT_RULE = re.compile(r"@font-face\{[^}]*url\(fonts/(KaTeX_[\w-]+)\.woff2\)[^}]*\}")


def loader() -> str:
    """The script that each widget carries: it finds the library."""
    return (_ROOM / "js" / "loader.js").read_text(encoding="utf-8")


@cache
def parts() -> dict[str, str]:
    """The library: texts by the names under which js/main.js knows them."""
    picker = _PICKER.read_text(encoding="utf-8")
    katex = (_KATEX / "katex.min.css").read_text(encoding="utf-8")
    return {
        "script": _bundled("notebook.js"),
        "bar": f'<div class="work"><p class="about"></p>{picker}</div>',
        "barStyle": _bundled("notebook.css"),
        "explorer": bundle.skeleton(),
        "explorerStyle": bundle.style(),
        "katex": (_KATEX / "katex.min.js").read_text(encoding="utf-8"),
        "katexStyle": _FONT_RULE.sub(_with_its_font, katex),
    }


@cache
def version() -> str:
    """A name of the library that changes with it: a page may hold that of an older kernel too."""
    return hashlib.blake2b("".join(parts().values()).encode(), digest_size=8).hexdigest()


class Library(ipywidgets.Widget):
    """The library as a model without a view. All widgets of a kernel share it: it is sent and saved once."""

    parts = traitlets.Dict().tag(sync=True)


def library() -> Library:
    """The library of this kernel, opened again where somebody has closed all widgets."""
    shared = _shared()
    if shared.comm is None:
        shared.open()
    return shared


@cache
def _shared() -> Library:
    return Library(parts=parts())


def _bundled(name: str) -> str:
    return (bundle.BUNDLED / name).read_text(encoding="utf-8")


def _with_its_font(rule: re.Match[str]) -> str:
    """The rule with the font in it; nothing for a font that no formula of ours uses."""
    name = rule[1]
    if not _FONTS.fullmatch(name):
        return ""
    font = base64.b64encode((_KATEX / "fonts" / f"{name}.woff2").read_bytes()).decode()
    source = f'src:url(data:font/woff2;base64,{font}) format("woff2")'
    return re.sub(r"src:[^}]*", source, rule[0])
