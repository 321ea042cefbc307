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

import model.loading.loading
import model.nn.attention
import viz.server.asgi
import viz.views.home.explore
import viz.views.tokens.listing
from model.nn.recorder import AttentionCall
from viz.state.session import current

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

    def fused(call: AttentionCall, dropout: float) -> Tensor:
        if call.query.shape[-2] > ROOM:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 9 TB")
        return attention(call, dropout)

    return fused


def plant() -> None:
    model.loading.loading.ASSETS = Path(os.environ["FAULTY_ASSETS"])
    model.nn.attention.fused = within_memory(model.nn.attention.fused)
    viz.views.tokens.listing.token_list = breaking(viz.views.tokens.listing.token_list)
    viz.views.home.explore.outcome = breaking(viz.views.home.explore.outcome)


if __name__ == "__main__":
    plant()
    cli.main(["run", viz.server.asgi.__file__, *sys.argv[1:]], prog_name="streamlit")
