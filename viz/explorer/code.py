"""The code of a layer's stages as the browser gets it, which fills in the chosen cell (js/code.js)."""

from threading import Lock
from weakref import ref

from cachetools import LRUCache, cached

from model.snippets import STYLES, LaterStage, Origin, code_of
from model.snippets.script import LOADER
from model.trace.records import Attention
from viz.explorer.packing import Json

_KEPT = 256  # layers


@cached(
    LRUCache(_KEPT),
    key=lambda attention, origin, later: (ref(attention), origin and ref(origin), later),
    lock=Lock(),
)
def code_json(attention: Attention, origin: Origin | None, later: tuple[LaterStage, ...]) -> Json:
    """Every snippet of a layer, and what a script of it begins with. The arguments: as `code_of` takes
    them."""
    code = code_of(attention, origin, later=later)
    return {
        "styles": dict(STYLES),
        "loader": LOADER,
        "reads": dict(code.reads),
        "refusal": code.refusal,
        "stages": {
            stage: {
                style: {
                    "lines": [(line.code, line.beside) for line in snippet.lines],
                    "given": code.given(stage, style),
                    "after": snippet.after,
                    "result": snippet.result,
                    "remark": snippet.remark,
                }
                for style, snippet in styles.items()
            }
            for stage, styles in code.snippets.items()
        },
    }
