"""The inputs of a worked example as fields, and the example computed from what stands in them."""

from functools import lru_cache, partial

import numpy as np
import pandas as pd
import streamlit as st

from model.worked.example import Array64, Example, Input, read_only
from viz.notation.words import sentences_of
from viz.views.worked.by_hand import worked_example

say = sentences_of("worked.inputs")

NUMBERS, ROUNDS = "worked-numbers", "worked-rounds"  # session state, by name of example
_CELL, _FIELD = 84, 190  # widths in pixels
InputKey = tuple[tuple[str, bytes], ...]


def with_own_numbers(name: str) -> Example:
    """Draws the fields of an example, and computes it from what stands in them.

    Raises ValueError with a sentence where the numbers do not fit.
    """
    example = worked_example(name)
    kept = _kept(name)
    with st.popover("Change the numbers", key=f"numbers-{name}"):
        with st.container(horizontal=True, gap="medium"):
            for item in example.inputs:
                kept[item.name] = _field(item, name, kept.get(item.name, item.value))
        if any(not np.array_equal(kept[item.name], item.value) for item in example.inputs):
            put_back = partial(_put_back, name)
            st.button(say("reset_starting_numbers"), key=f"notes-{name}", on_click=put_back)
            if any(step.notes for step in example.steps):
                st.caption(say("changed_numbers_results"))
    for item in example.inputs:
        if np.isnan(kept[item.name]).any():
            raise ValueError(f"{item.label} has an empty cell. {item.rule}")
    return _worked(name, tuple((item.name, kept[item.name].tobytes()) for item in example.inputs))


@lru_cache(maxsize=64)
def _worked(name: str, numbers: InputKey) -> Example:
    example = worked_example(name)
    values = {
        item.name: np.frombuffer(kept).reshape(item.value.shape)
        for item, (_, kept) in zip(example.inputs, numbers, strict=True)
    }
    return example.with_inputs(**values)


def _kept(name: str) -> dict[str, Array64]:
    every: dict[str, dict[str, Array64]] = st.session_state.setdefault(NUMBERS, {})
    return every.setdefault(name, {})


def _round(name: str) -> int:
    """How often the example was reset: each reset needs fields with new keys."""
    rounds: dict[str, int] = st.session_state.setdefault(ROUNDS, {})
    return rounds.setdefault(name, 0)


def _put_back(name: str) -> None:
    _kept(name).clear()
    st.session_state[ROUNDS][name] = _round(name) + 1


def _field(item: Input, name: str, shown: Array64) -> Array64:
    key = f"{name}-{item.name}-{_round(name)}"
    if item.value.ndim:
        return _table(item, key, shown)
    kind, size = int if item.whole else float, abs(float(item.given))
    # One press of + or − goes by a tenth, or by less where the number itself is small.
    stride = 0.1 if size >= 0.1 or size == 0 else 10.0 ** np.floor(np.log10(size))
    return read_only(
        st.number_input(
            item.label,
            kind(item.lowest),
            kind(item.highest),
            kind(float(shown)),
            step=kind(1 if item.whole else stride),
            format="%d" if item.whole else "%g",
            key=f"number-{key}",
            help=item.rule,
            width=_FIELD,
        )
    )


def _table(item: Input, key: str, shown: Array64) -> Array64:
    """A table to edit. It opens with the kept numbers; after that Streamlit adds the edits to them."""
    if f"table-{key}" not in st.session_state:  # the first time, or back from another page
        st.session_state[f"opened-{key}"] = shown
    opened: Array64 = st.session_state[f"opened-{key}"]
    widths = {label: _width(label) for label in item.columns or ()}
    beside = max(map(_width, item.rows)) if item.rows else 0
    step = 1 if item.whole else None
    with st.container(width="content"):
        st.caption(item.label, help=item.rule)
        entered = st.data_editor(
            frame(item, opened),
            key=f"table-{key}",
            width=beside + sum(widths.values()),
            hide_index=item.rows is None,
            column_config={"_index": st.column_config.Column(width=beside)}
            | {
                label: st.column_config.NumberColumn(width=width, step=step)
                for label, width in widths.items()
            },
            alt=f"{item.label}. {item.rule}",
        )
    return values(entered, item)


def _width(label: str) -> int:
    """Room for a label and the pencil beside it."""
    return max(_CELL, 8 * len(label) + 46)


def frame(item: Input, shown: Array64) -> pd.DataFrame:
    """An input's numbers under its labels, one row where it has one axis."""
    kind = np.int64 if item.whole and np.isfinite(shown).all() else np.float64
    return pd.DataFrame(
        np.atleast_2d(shown).astype(kind), index=item.rows, columns=list(item.columns or ())
    )


def values(entered: pd.DataFrame, item: Input) -> Array64:
    """The numbers of a table, in the shape of the input; NaN where a cell was emptied."""
    table = entered.apply(pd.to_numeric, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return read_only(table.reshape(item.value.shape))
