"""What is said of the open model above a page, and whether a model is on this computer."""

import re
from typing import TYPE_CHECKING

import streamlit as st
from cachetools.func import ttl_cache

from model.download.packed import Packed
from model.download.sources import is_on_disk, is_unpacked, packed_weights
from model.loading.registry import models
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.state.session import current

if TYPE_CHECKING:
    from model.run.model import Model

LOOK_SECONDS = 3  # for which a look at the disk is believed
_OF_A_LAYER = re.compile(r"\.\d+\.")


def say_untrained() -> None:
    """Where the open model has random weights, says so, and what it is."""
    entry = models.found(current().model)
    if entry is not None and entry.untrained:
        st.markdown(
            ":material/casino: The open model is **untrained**: its weights are random, so no head has "
            "learned a job, and what it predicts means nothing.",
            help=plain(entry.about),
        )


def say_copy() -> None:
    """Where the open model's weights were unpacked from few bits, says so: of a copy of the published model,
    and of a model whose own files are quantized."""
    if looked_up(current().model)[1]:
        st.caption(
            "The numbers of a copy unpacked from 4-bit weights.",  # one line on a phone
            help="They are close to those of the published model, but not equal. In the matrices of its "
            "layers every run of 32 weights has at most 16 different values. All numbers that are shown are "
            "this copy's own, and checked. How far they are from those of the published model cannot be "
            "shown beside them: its weights come from the hub only, and where the hub can be reached they "
            "are opened in place of this copy.",
        )
    elif (found := quantized(current().model)) is not None:
        st.caption(
            f"Weights dequantized from {'few' if found.bits is None else found.bits} bits.",
            help=plain(
                f"This model's files hold its matrices quantized ({found.words}). They were unpacked to "
                "float32 when it was loaded. Every weight that is shown, and every number made with weights, "
                "is that of the unpacked ones, and checked against the library's own attention. A pass with "
                "packed weights would also round what its matrices read; here nothing else is rounded."
            ),
        )


def say_unused(model: "Model") -> None:
    """Says which tensors of a model's files the library leaves out. Without one of a layer, what is shown is
    not the pass that the model was trained for."""
    if not model.unused:
        return
    count = counted(len(model.unused), "tensor")
    left_out = f"Hugging Face's library does not use {count} of this model's files"
    if of_layers := [name for name in model.unused if _OF_A_LAYER.search(name)]:
        st.warning(
            plain(
                f"{left_out}, among them {of_layers[0]}. So its layers may compute something else here than "
                "they were trained for."
            )
        )
    else:
        st.caption(
            f"{left_out}.", help=plain(f"{', '.join(model.unused)}: nothing depends on them.")
        )


@ttl_cache(maxsize=200, ttl=LOOK_SECONDS)
def looked_up(name: str) -> tuple[bool, bool]:
    """Whether a model is on this computer, and whether its weights were unpacked from few bits.

    To look at the disk for all models in every run of a page would take a third of the run.
    """
    entry = models.found(name)
    return (False, False) if entry is None else (is_on_disk(entry), is_unpacked(entry))


@ttl_cache(maxsize=200, ttl=LOOK_SECONDS)
def quantized(name: str) -> Packed | None:
    """How the weights of a model are quantized in its own files."""
    entry = models.found(name)
    return None if entry is None else packed_weights(entry)
