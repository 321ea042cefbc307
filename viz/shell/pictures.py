"""What a view shows: a figure with a way to keep it, the table behind it, the check of a run."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from viz.elements.plot import plot
from viz.notation.csv_safe import sheltered_table
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.saving.save import save_figure
from viz.state.look import Look


def chart(figure: go.Figure, key: str) -> None:
    """A Plotly figure without its tool bar, and a way to keep it."""
    plot(figure, key)
    save_figure(figure, key)


@st.fragment
def table(
    frame: pd.DataFrame,
    key: str,
    *,
    decimals: int = 4,
    formats: Mapping[str, str] | None = None,
) -> None:
    """The plain table behind a picture, for screen readers and for copying: closed, and made when it is
    opened. formats: of columns whose numbers have other digits than `decimals`."""
    row = st.expander("The numbers as a table", key=f"numbers-{key}", on_change="rerun")
    if row.open:
        numbers = frame.select_dtypes("number")
        columns = {
            str(name): st.column_config.NumberColumn(
                format="%d" if whole else (formats or {}).get(str(name), f"%.{decimals}f")
            )
            for name, whole in (numbers.isna() | (numbers % 1 == 0)).all().items()
        }
        row.dataframe(sheltered_table(frame), key=f"table-{key}", column_config=columns)


def checked(seen: Look) -> None:
    """The check line of a page: how far the recomputed numbers lie from the recorded ones."""
    st.caption(
        f"Check: attention outputs and norms, recomputed from what was recorded, differ from the "
        f"model's own by at most {difference(seen.trace.check())}. The pass ran on "
        f"{plain(seen.trace.device)}."
    )
