"""What the views of "All heads" share: the family of heads, the chosen head and its labels, maps and lists to
click, and what runs in the background."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from model.analysis.attribution.head_matrices import Composition
from model.analysis.heads.contributions import Ablations
from model.analysis.heads.statistics import Family, families, family_of
from model.nn.places import Head
from model.profile.battery import KINDS
from model.profile.shipped import made, profile_of, shipped_profiles
from model.serving.engine import Request
from viz.elements.one_of import choosable_table, one_of
from viz.elements.plot import plot
from viz.figures.head_tiles import Cell, head_map
from viz.figures.heatmap import NARROW, headed, weights_of_head
from viz.notation.head_labels import MEANINGS, TITLES, evidence_of, given_labels, labels_by_head
from viz.notation.markdown import plain
from viz.notation.theme import QuantityName
from viz.saving.save import save_figure
from viz.shell.background import Passes, PassesOf
from viz.shell.pictures import chart, readout_of
from viz.state.look import Look, labels_of
from viz.state.navigation import view_link
from viz.state.session import change_view, current, shown, write_link

LIST, MAP = "List", "Map"


def choose_family(seen: Look) -> Family:
    """The heads that are compared; a choice only where a model has several kinds. Another family opens on
    its first head."""
    known = families(seen.trace)
    names = [attention.name for attention in seen.trace.attention]
    if current().place not in names:
        open_head((names[0], 0))
    here = family_of(seen.trace, seen.trace.find(current().place))
    if len(known) > 1:
        st.segmented_control(
            "Heads of",
            known,
            required=True,
            format_func=lambda family: family.title,
            **shown("all-heads-family", here, lambda to: open_head(to.heads(seen.trace)[0])),
        )
    return here


def open_head(head: Head) -> None:
    change_view(replace(current(), place=head[0], head=head[1]))


def names_of(family: Family, seen: Look) -> list[str]:
    return [attention.name for attention in family.members(seen.trace)]


def cell_of(seen: Look, family: Family) -> Cell:
    """Where the chosen head stands among its family: layer and head, counted from 0."""
    return names_of(family, seen).index(current().place), current().head


def name_of(seen: Look, head: Head) -> str:
    return seen.trace.find(head[0]).place.head(head[1])


def clickable(figure: go.Figure, heads: Sequence[Head], key: str, alt: str) -> None:
    """A picture with the trace "heads": a click on a point opens that head."""
    view = current()
    fresh = f"{key}-{view.place}-{view.head}"  # nothing stays selected in a new picture
    plot(figure, fresh, alt=alt, clicked=lambda place: open_head(heads[place]))
    save_figure(lambda: figure, key)


def map_or_list(view: str, *, first: str = MAP) -> str:
    """MAP or LIST, as it was chosen in one of the views; `first` is what it opens on."""
    ways = (MAP, LIST) if first == MAP else (LIST, MAP)
    return one_of("Show as", ways, f"all-heads-{view}-as", quiet=True)


def map_of_heads(
    seen: Look,
    family: Family,
    values: NDArray[np.float64],
    *,
    quantity: QuantityName,
    title: str,
    words: Callable[[float], str],
    key: str,
    alt: str,
    decimals: int = 2,
) -> None:
    """values (head of the family,): one cell each, the chosen head's framed; a click opens a head.

    words: what hovering says of a value, after the head's name.
    """
    heads = family.heads(seen.trace)
    figure = head_map(
        values.reshape(len(family.members(seen.trace)), -1),
        quantity=quantity,
        title=title,
        chosen=cell_of(seen, family),
        words=[
            f"{name_of(seen, head)}<br>{words(float(value))}"
            for head, value in zip(heads, values, strict=True)
        ],
        decimals=decimals,
    )
    clickable(figure, heads, key, alt)


def list_of_heads(
    seen: Look,
    heads: Sequence[Head],
    columns: Mapping[str, NDArray[np.float64]],
    key: str,
    *,
    head: str = "head",
    decimals: int = 3,
    helps: Mapping[str, str] | None = None,
) -> None:
    """A table with one row for each head: a click on a row opens it, one on a column's name sorts by it.

    head: name of the first column. helps: what the question mark of a column says.
    """
    frame = pd.DataFrame({head: [name_of(seen, one) for one in heads], **columns})
    choosable_table(
        frame,
        key,
        lambda row: open_head(heads[row]),
        decimals=decimals,
        helps=helps,
        height=min(36 * len(frame) + 40, 340),
        hide_index=True,
    )


@contextmanager
def beside_chosen_head(
    seen: Look, widths: tuple[int, int] = (3, 2), title: str = ""
) -> Iterator[DeltaGenerator]:
    """The column of a picture; the chosen head's weights stand to its right, below a place for words."""
    picture, one = st.columns(widths, gap="large")
    words = one.container()
    with picture:
        yield words
    with one:
        chosen_head(seen, title)


def chosen_head(seen: Look, title: str = "") -> None:
    """The chosen head's weights in a run, and a link to the explorer."""
    attention, head = seen.attention, seen.head
    queries, keys = labels_of(seen.trace, attention)
    figure = weights_of_head(attention, head, queries=queries, keys=keys, fitting=NARROW)
    chart(headed(figure, title) if title else figure, f"all-heads-chosen-{attention.name}-{head}")
    readout_of(attention, head, queries, keys)
    view = replace(current(), show="", stage="weights")
    if seen.request.intervention.changes:
        view = replace(view, intervention=seen.request.intervention)
    view_link(
        "pages/attention.py",
        f"Open {name_of(seen, (attention.name, head))} in the explorer →",
        view,
    )
    write_link()


LISTED = 8  # heads of a label, in words


@dataclass(frozen=True, eq=False)
class Labelled:
    """The labels of a family of heads, and what they were found on."""

    given: pd.DataFrame
    by_head: Mapping[Head, list[str]]
    source: str

    def words(self, head: Head) -> str:
        """The second line of what hovering over a head says; "" without labels."""
        return "".join(f"<br>label: {label}" for label in self.by_head.get(head, ()))

    def heads(self, label: str | None) -> list[Head]:
        """Those that have a label."""
        mine = self.given[self.given["label"] == label]
        return list(zip(mine["layer"], mine["head"], strict=True))


def labelled(seen: Look, family: Family) -> Labelled | None:
    """The labels of a family of heads; None where no profile of these weights ships."""
    found = profile_of(seen.model)
    if found is None:
        return None
    given = given_labels(found)
    text = made(shipped_profiles()[seen.model.name]).text
    source = f"{found.sums.tokens:,} tokens of {text}"
    mine = given[given["layer"].isin(names_of(family, seen))]
    return Labelled(mine, labels_by_head(found), source)


def choose_label(seen: Look, family: Family, known: Labelled) -> list[Head]:
    """The heads with the label that is chosen; none until one is."""
    counts = known.given["label"].value_counts()
    present = [kind.name for kind in KINDS if kind.name in counts]
    label = st.pills(
        "Heads with a label",
        present,
        format_func=lambda one: f"{TITLES[one]} ({counts[one]})",
        key=f"all-heads-label-{seen.model.name}-{family.title}",
    )
    if label is not None:
        st.markdown(_evidence(seen, known, label))
    st.caption(
        "A label is of the unchanged model, not of this sentence. Its score is a mean weight on prompts "
        "whose structure is known, its control the same where the reason for it is missing; “over the text” "
        f"is the mean weight over {plain(known.source)}."
    )
    return known.heads(label)


def _evidence(seen: Look, known: Labelled, label: str) -> str:
    mine = known.given[known.given["label"] == label]
    named = [
        f"{name_of(seen, (row['layer'], row['head']))} {evidence_of(row)}"
        for row in mine.head(LISTED).to_dict("records")
    ]
    more = f"; and {len(mine) - LISTED} more" if len(mine) > LISTED else ""
    return f"**{TITLES[label]}.** {MEANINGS[label]} {'; '.join(named)}{more}."


class AblationRun(Passes[Ablations]):
    """One pass for each head, under way or ended."""


class AblationRuns(PassesOf[Request, AblationRun]):
    """At most one run for a request; the last ones are kept with what they found."""

    def __init__(self) -> None:
        super().__init__(AblationRun)


@dataclass(frozen=True)
class CompositionSoFar:
    """One head's numbers with the heads it has been compared with."""

    done: int  # heads
    total: int
    ratios: tuple[Composition, ...]


class CompositionRun(Passes[CompositionSoFar]):
    """One head compared with all others, under way or ended."""


class CompositionRuns(PassesOf[tuple[Request, Head], CompositionRun]):
    """At most one run for a request and a head; the last ones are kept with what they found."""

    def __init__(self) -> None:
        super().__init__(CompositionRun)
