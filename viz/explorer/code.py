"""The code of a layer's stages as the browser gets it, which fills in the chosen cell (js/code.js)."""

from model.snippets import STYLES, LayerCode
from model.snippets.script import LOADER
from viz.explorer.packing import Json


def code_json(code: LayerCode) -> Json:
    """Every snippet, and what a script of it begins with."""
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
