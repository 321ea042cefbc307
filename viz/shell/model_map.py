"""The map of the model above every page: its blocks in order, each a link to the page that shows it.

The blocks that the open page shows are filled, and the tick of the chosen layer is lit.
"""

import html
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from model.nn.config import Part, TransformerConfig
from viz.notation.model_map import Block, Kind, Rail, rails
from viz.state.menu import entry
from viz.state.navigation import has_others, leading_to

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
    "pages/corpus.py": ("attention",),
    "pages/laboratory.py": ("attention",),
    "pages/encoder_decoder.py": ("attention",),
}
# The addresses of the pages on which a block is filled, by viz/shell/keys/js/links.js: drawn anew with each
# page, the map would lose the keyboard.
SHOWN_ON = {
    kind: " ".join(
        f"/{entry(one).address}" for one in (file, *(also for also in ALSO if kind in ALSO[also]))
    )
    for kind, file in PAGES.items()
}
SPOKEN: dict[Kind, str] = {"add": "+, add to the residual stream"}  # where the name is a sign
_ROOM_FOR_STACKS = "<style>.st-key-work-bar { --picker: var(--encoder) }</style>"


@dataclass
class ModelMap:
    """A map that is drawn, or about to be."""

    rails: tuple[Rail, ...]
    carried: Mapping[str, str]  # what each link says of the view
    drawn: "DeltaGenerator"
    lit: str | None = None  # the sub-layer whose layer's tick is lit

    def light(self, place: str) -> None:
        """Draws the map with the tick of a layer lit. place: the name of a sub-layer of it."""
        if place != self.lit:
            self.lit = place
            rows = "".join(
                _rail(rail, place, self.carried, named=len(self.rails) > 1) for rail in self.rails
            )
            room = _ROOM_FOR_STACKS if len(self.rails) > 1 else ""
            self.drawn.html(f'<nav aria-label="The parts of the model">{rows}</nav>{room}')


def model_map(
    config: TransformerConfig, carried: Mapping[str, str], unproven: Collection[Part] = ()
) -> ModelMap:
    """One line of blocks for each stack. unproven: parts that are left out."""
    return ModelMap(rails(config, unproven), carried, st.empty())


def _rail(rail: Rail, place: str, carried: Mapping[str, str], *, named: bool) -> str:
    """The blocks of a stack."""
    before, layer, after = (
        "".join(_block(block, carried) for block in blocks)
        for blocks in (rail.before, rail.layer, rail.after)
    )
    name = f"<small>{rail.stack.capitalize()}</small>" if named else ""
    return (
        f'<div class="rail" data-stack="{rail.stack}">{name}{before}'
        f'<span class="layer">{layer}{_ticks(rail, place)}</span>{after}</div>'
    )


def _block(block: Block, carried: Mapping[str, str]) -> str:
    file, said = PAGES[block.kind], html.escape(f"{block.formula}\nshape: {block.shape}")
    leads = leading_to(file, carried) if has_others() else ""
    label = f' aria-label="{SPOKEN[block.kind]}"' if block.kind in SPOKEN else ""
    return (
        f'<a data-kind="{block.kind}" data-shown-on="{SHOWN_ON[block.kind]}" data-said="{said}" '
        f'aria-description="{said}"{label} {leads}>{html.escape(block.name)}</a>'
    )


def _ticks(rail: Rail, place: str) -> str:
    """One tick a layer, and how many there are."""
    chosen = [n for n in range(rail.layers) if place.startswith(f"{rail.stack}.{n}.")]
    ticks = "".join(f"<i class={'lit' if n in chosen else 'tick'}></i>" for n in range(rail.layers))
    said = f"{rail.layers} layers" + (f", layer {chosen[0]} is chosen" if chosen else "")
    return (
        f'<span class="ticks" role="img" aria-label="{said}" data-stack="{rail.stack}">'
        f"<b>× {rail.layers}</b><span>{ticks}</span></span>"
    )
