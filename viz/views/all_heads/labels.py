"""The labels of heads in the model's shipped profile: in words, and as a choice that frames their tiles."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from model.analysis.heads.families import Family
from model.nn.places import Head
from model.profile.battery import KINDS
from model.profile.shipped import made, profile_of, shipped_profiles
from viz.notation.head_labels import MEANINGS, TITLES, evidence_of, given_labels, labels_by_head
from viz.notation.markdown import plain
from viz.state.look import Look
from viz.views.all_heads.choice import name_of, names_of

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
