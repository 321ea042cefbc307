"""What the browser needs once a page, whatever is shown: the explorer's script, style sheets and skeletons,
and KaTeX with its fonts. All of it lies in this installation, so nothing is fetched."""

import hashlib
from functools import cache
from pathlib import Path

import ipywidgets
import traitlets

from viz.explorer import bundle

_ROOM = Path(__file__).parent
_PICKER = _ROOM.parent / "shell" / "head_picker" / "picker.html"


def loader() -> str:
    """The script that each widget carries: it finds the library."""
    return (_ROOM / "js" / "loader.js").read_text(encoding="utf-8")


@cache
def parts() -> dict[str, str]:
    """The library: texts by the names under which js/main.js knows them."""
    picker = _PICKER.read_text(encoding="utf-8")
    return {
        "script": bundle.script(),
        "bar": f'<div class="work"><p class="about"></p>{picker}</div>',
        "barStyle": bundle.bundled("notebook.css"),
        "explorer": bundle.skeleton(),
        "explorerStyle": bundle.style(),
        "katex": bundle.katex(),
        "katexStyle": bundle.katex_style(),
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
