"""The app with faults planted, which sentences set off: `python -m tests.browser.faulty_server`.

FAULTY_ASSETS names the folder of shipped models. A sentence with BREAK breaks parts of two pages; one
of more than 60 tokens finds no memory.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from streamlit.web import cli
from torch import Tensor

import model.attention
import model.loading
import viz.pipeline
import viz.server
import viz.tokens.listing
from viz.session import current

ROOM = 60  # tokens that there is memory for


def breaking(part: Callable[..., object]) -> Callable[..., object]:
    """The same part of a page; it fails on some sentences, in the sentence's own words."""

    def drawn(*arguments: object, **others: object) -> object:
        if "BREAK" in current().text:
            raise KeyError(current().text)
        return part(*arguments, **others)

    return drawn


def within_memory(attention: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same attention, where memory ends."""

    def fused(query: Tensor, *arguments: object) -> Tensor:
        if query.shape[-2] > ROOM:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 9 TB")
        return attention(query, *arguments)

    return fused


def plant() -> None:
    model.loading.ASSETS = Path(os.environ["FAULTY_ASSETS"])
    model.attention._fused = within_memory(model.attention._fused)
    viz.tokens.listing.token_list = breaking(viz.tokens.listing.token_list)
    viz.pipeline.pipeline = breaking(viz.pipeline.pipeline)


if __name__ == "__main__":
    plant()
    cli.main(["run", viz.server.__file__, *sys.argv[1:]], prog_name="streamlit")
