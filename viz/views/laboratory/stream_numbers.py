"""The largest numbers of the residual stream, to be set by hand."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from model.analysis.stream.stream import LargeNumber, largest_numbers
from model.nn.intervention import Intervention
from model.nn.places import Place, layer_label
from model.trace.trace import Trace
from viz.elements.one_of import choosable_table
from viz.notation.labels import token_label
from viz.notation.words import sentences_of
from viz.state.look import Look, traced
from viz.state.session import current, intervene

say = sentences_of("laboratory.stream_numbers")

LABEL = 18  # characters of a token


def stream_numbers(look: Look) -> None:
    """The largest numbers of the unchanged run's stream; a click sets one by hand."""
    unchanged = traced(replace(look.request, intervention=Intervention()))
    value = st.number_input("Set to", value=0.0, key="laboratory-stream-value", width=160)
    listed = largest_numbers(unchanged)
    now = current().intervention.stream
    by_place = {cell[:3]: cell for cell in now}

    def take(row: int) -> None:
        one = listed[row]
        cell = by_place.get((one.place, one.token, one.dimension))
        intervene(stream=now - {cell} if cell else now | {(*one[:3], value)})

    frame = pd.DataFrame(
        {
            "read by": [layer_label(one.place) for one in listed],
            "token": [_token(unchanged, one) for one in listed],
            "dimension": [str(one.dimension) for one in listed],
            "number": [one.value for one in listed],
            "× median": [one.ratio for one in listed],
            "set to": [
                f"{by_place[one[:3]][-1]:g}" if one[:3] in by_place else "" for one in listed
            ],
        }
    )
    choosable_table(frame, f"laboratory-stream-{hash(look.request)}", take, decimals=2)
    st.caption(say("largest_numbers_residual"))


def _token(trace: Trace, number: LargeNumber) -> str:
    tokens = trace.tokens
    if Place.named(number.place).stack == "decoder":
        tokens = trace.target_tokens or tokens
    return f"{number.token} {token_label(tokens[number.token].text, LABEL)}"
