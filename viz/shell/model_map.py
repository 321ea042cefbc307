"""The map of the model above every page: its blocks in order, each a link to the page that shows it.

The blocks that the open page shows are filled, and the tick of the chosen layer is lit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from model.nn.config import TransformerConfig
from viz.notation.markdown import plain
from viz.notation.model_map import Block, Kind, Rail, rails
from viz.state.navigation import page_link

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PAGES: dict[Kind, str] = {
    "tokens": "pages/tokens.py",
    "positions": "pages/positions.py",
    "norm": "pages/layer_norm.py",
    "attention": "pages/attention.py",
    "cross": "pages/encoder_decoder.py",
    "feed_forward": "pages/feed_forward.py",
    "add": "pages/feed_forward.py",
    "memory": "pages/encoder_decoder.py",
    "vectors": "pages/tokens.py",
    "logits": "pages/prediction.py",
    "next_token": "pages/prediction.py",
}
ALSO: dict[str, tuple[Kind, ...]] = {
    "pages/home.py": ("attention",),
    "pages/all_heads.py": ("attention",),
    "pages/laboratory.py": ("attention",),
    "pages/encoder_decoder.py": ("attention",),
}


@dataclass
class ModelMap:
    """A map that is drawn: for each stack, where its ticks are."""

    ticks: tuple[tuple[Rail, "DeltaGenerator"], ...]
    lit: str = ""  # the sub-layer whose layer's tick is lit

    def light(self, place: str) -> None:
        """Lights the tick of a layer. place: the name of a sub-layer of it."""
        if place != self.lit:
            self.lit = place
            for rail, drawn in self.ticks:
                drawn.html(_ticks(rail, place))


def model_map(config: TransformerConfig, file: str, carried: Mapping[str, str]) -> ModelMap:
    """Draws one line of blocks for each stack. file: the page that is open. carried: what each link says of
    the view."""
    shown = {kind for kind, page in PAGES.items() if page == file} | set(ALSO.get(file, ()))
    named = config.shape == "encoder-decoder"
    st.html(_filled(shown))
    with st.container(key="model-map", gap=None):
        return ModelMap(tuple((rail, _rail(rail, carried, named=named)) for rail in rails(config)))


def _filled(shown: set[Kind]) -> str:
    """The style of the blocks that are filled. A class of their own would mount them anew with each page, and
    the keyboard would lose its link."""
    blocks = ", ".join(f'[class*="-kind-{kind}"] a' for kind in sorted(shown)) or "none"
    colours = "--filled: var(--strong); --said: var(--paper)"
    return f"<style>.st-key-model-map :is({blocks}) {{ {colours} }}</style>"


def _rail(rail: Rail, carried: Mapping[str, str], *, named: bool) -> "DeltaGenerator":
    """The blocks of a stack. Returns the place of its ticks."""
    with st.container(horizontal=True, gap=None, key=f"rail-{rail.stack}"):
        if named:
            st.caption(rail.stack.capitalize())
        _blocks(rail, "before", rail.before, carried)
        with st.container(horizontal=True, gap=None, width="content", key=f"layer-{rail.stack}"):
            _blocks(rail, "layer", rail.layer, carried)
            ticks = st.empty()
        _blocks(rail, "after", rail.after, carried)
    return ticks


def _blocks(rail: Rail, part: str, blocks: tuple[Block, ...], carried: Mapping[str, str]) -> None:
    for number, block in enumerate(blocks):
        with st.container(
            width="content", key=f"block-{rail.stack}-{part}-{number}-kind-{block.kind}"
        ):
            said = plain(f"{block.formula} · {block.shape}")
            page_link(PAGES[block.kind], block.name, help=said, **carried)


def _ticks(rail: Rail, place: str) -> str:
    """One tick a layer, and how many there are."""
    chosen = [n for n in range(rail.layers) if place.startswith(f"{rail.stack}.{n}.")]
    ticks = "".join(f"<i class={'lit' if n in chosen else 'tick'}></i>" for n in range(rail.layers))
    said = f"{rail.layers} layers" + (f", layer {chosen[0]} is chosen" if chosen else "")
    return (
        f'<span class="ticks" role="img" aria-label="{said}" data-stack="{rail.stack}">'
        f"<b>× {rail.layers}</b><span>{ticks}</span></span>"
    )
