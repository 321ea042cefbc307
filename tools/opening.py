"""Records what Explore shows before its model is loaded: `python -m tools.opening`, after a change of the
model, of the explorer's message or of what stands beside its map."""

import json
import re
import struct
import zlib
from typing import Any

from streamlit.testing.v1 import AppTest

from model.system.files import write_whole
from viz.explorer.packing import FLOAT, numbers_start, words
from viz.server.asgi import APP
from viz.state.engine import engine
from viz.state.link import View
from viz.views.home.opening import OUTCOME, RECORDED

OF_A_SESSION = ("run", "turns", "ahead", "assets", "selection", "revision", "mount")
# Groups whose arrays follow when they are opened: W_O is twice as large as all else.
LATER = ("merged",)


def live() -> tuple[dict[str, Any], bytes]:
    """The words of the live page's first message, those of one session left out, and its arrays."""
    engine().model(View().model, lambda sentence, share: None)
    page = AppTest.from_file(str(APP.parent / "pages/home.py"), default_timeout=300).run()
    (block,) = (
        part.proto.bytes for part in page.get("bidi_component") if b'"checked"' in part.proto.bytes
    )
    said: dict[str, Any] = {
        name: value for name, value in words(block).items() if name not in OF_A_SESSION
    }
    said["hero"]["ways"] = {}
    for name in LATER:
        said["layer"]["around"][name] |= {"facts": None, "numbers": None}
    bodies = (part.proto.body for part in page.get("html"))
    said[OUTCOME] = [body for body in bodies if re.match(r'<\w+ class="outcome', body)]
    numbers = block[numbers_start(block) :]
    return said, numbers[: max(end for _, end in arrays(said).values())]


def arrays(said: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """The first byte of each array of a message and the one after its last, by its path."""
    found = {}

    def look(part: object, path: str) -> None:
        if isinstance(part, dict) and {*part} == {"kind", "start", "count"}:
            size = FLOAT if part["kind"] == "floats" else 1
            found[path] = part["start"], part["start"] + size * part["count"]
        elif isinstance(part, dict):
            for name, inner in part.items():
                look(inner, f"{path}/{name}")

    look(said, "")
    return found


def main() -> None:
    said, numbers = live()
    written = json.dumps(said).encode()
    write_whole(RECORDED, zlib.compress(struct.pack("<I", len(written)) + written + numbers, 9))


if __name__ == "__main__":
    main()
