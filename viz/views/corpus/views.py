"""What the page "Heads over a corpus" shows: one or two profiles, and one made of the visitor's own text."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np
import streamlit as st

from model.loading.registry import may_be_linked, models
from model.nn.places import Head
from model.profile.battery import KINDS
from model.profile.examples import CRITERIA
from model.profile.profile import Profile
from model.profile.projection import FEATURES
from model.profile.shipped import weights_of
from viz.elements.error_boundary import error_boundary
from viz.elements.one_of import one_of
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.shell.page import choose_view
from viz.shell.request import still_asked
from viz.state.look import Look, loaded
from viz.state.session import change_view, current, write_link
from viz.tour import card as tour
from viz.views.corpus import examples, message
from viz.views.corpus.choice import Source, choose, offer_folder, own_text, sources
from viz.views.corpus.component import examples_list, heads_map
from viz.views.corpus.sentence import beside_sentence

if TYPE_CHECKING:
    from model.run.model import Model

_CHOSEN, _START = "corpus-head", "corpus-first-head"  # session state: a profile's title -> its head
TITLES = {
    "weight": "Largest weight",
    "carried": "Most carried",
    "effect": "Largest effect",
    "chance": "By chance",
}
UNITS = {"carried": "carried", "effect": "effect"}
ALL = "of all heads"  # whose examples are searched


def heads(seen: Look, shown: Sequence[Source]) -> None:
    """The map, the table and one head's card; then the visitor's sentence and the head's examples."""
    if not shown:
        st.info(f"No profile ships with this copy. Make one of a text of yours under “{OWN}”.")
        return
    profiles = [source.profile for source in shown]
    titles = tuple(source.title for source in shown)
    start = _start(titles, profiles[0])
    heads_map(_block(titles, tuple(profiles), start), lambda *at: _take(titles, profiles, *at))
    at, head = _chosen(titles, profiles, start)
    _beside(seen, profiles[at], head)
    _examples(shown[at], profiles[at], head)
    _explain(shown, profiles)


@lru_cache(maxsize=4)
def _block(titles: tuple[str, ...], profiles: tuple[Profile, ...], start: int) -> bytes:
    shown = [
        message.Shown(title, profile, labels_of(profile))
        for title, profile in zip(titles, profiles, strict=True)
    ]
    return message.message(shown, start)


def labels_of(profile: Profile) -> tuple[message.Label | None, ...]:
    """The label with the highest score of each head that has one, as `Profile.label` gives it."""
    labels, titles = profile.labels, {kind.name: kind.title for kind in KINDS}
    given = labels[labels["given"]].sort_values("score", ascending=False, kind="stable")
    columns = (given[name].tolist() for name in ("layer", "head", "label", "score", "control"))
    best: dict[Head, message.Label] = {}
    for layer, head, label, score, control in zip(*columns, strict=True):
        beside = "" if np.isnan(control) else f"; control {control:.2f}"
        said = f"score {score:.2f} on prompts of known structure{beside}"
        best.setdefault((layer, head), message.Label(titles[label], said))
    return tuple(best.get(head) for head in profile.sums.heads)


def _start(titles: tuple[str, ...], profile: Profile) -> int:
    """The head that is chosen at first: the view's, where the profile has it. It stays while the same
    profiles are shown, so that their message is sent once."""
    kept, start = st.session_state.get(_START, ((), 0))
    if kept != titles:
        here, heads = (current().place, current().head), profile.sums.heads
        start = heads.index(here) if here in heads else 0
        st.session_state[_START] = titles, start
        st.session_state.pop(_CHOSEN, None)
    return int(start)


def _take(titles: tuple[str, ...], profiles: Sequence[Profile], at: int, head: int) -> None:
    """Keeps the head that was clicked. The rest of the app follows, where it is one of the open model's."""
    if not (0 <= at < len(profiles) and 0 <= head < len(profiles[at].sums.heads)):
        return
    st.session_state[_CHOSEN] = titles, at, head
    if profiles[at].about.model == current().model:
        place, number = profiles[at].sums.heads[head]
        change_view(replace(current(), place=place, head=number))


def _chosen(titles: tuple[str, ...], profiles: Sequence[Profile], start: int) -> tuple[int, Head]:
    kept, at, head = st.session_state.get(_CHOSEN, ((), 0, 0))
    if kept != titles:
        at, head = 0, start
    return at, profiles[at].sums.heads[head]


def _beside(seen: Look, profile: Profile, head: Head) -> None:
    with st.container():
        if is_of(profile, seen.model):
            st.markdown(beside_sentence(seen, profile, head))
        else:
            same = seen.model.address == profile.about.model
            theirs = plain(models.short_title(profile.about.model))
            other = "other weights of it" if same else theirs
            st.caption(
                f"Your sentence is read by {plain(seen.title)}, and this profile is of {other}: they "
                "cannot be compared."
            )


def _examples(source: Source, profile: Profile, head: Head) -> None:
    """The head's strongest examples, or those with a token that was searched for."""
    name = message.name_of(head)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="examples-of"):
        criterion = one_of(
            "Examples", list(CRITERIA), "corpus-criterion", named=TITLES.__getitem__, quiet=True
        )
        typed = st.text_input(
            "Search",
            key="corpus-search",
            placeholder="Search the examples for a token",
            label_visibility="collapsed",
            width=280,
        )
        everywhere = st.toggle(ALL, key="corpus-everywhere") if typed else False
    if not may_be_linked(source.model):
        st.caption(f"{plain(source.model)} is not on this computer, so its tokens cannot be shown.")
        return
    model = loaded(source.model)
    chance: list[examples.Example] = []
    if typed.strip():
        found = examples.with_token(profile, model, typed, None if everywhere else head)
        title = _found_title("all heads" if everywhere else name, typed.strip(), len(found))
    else:
        found = examples.of_head(head, profile.examples(head, criterion), UNITS.get(criterion, ""))
        title = f"Examples of {name}: {TITLES[criterion].lower()}"
        if criterion != "chance":
            drawn = profile.examples(head, "chance").head(examples.BY_CHANCE)
            chance = examples.of_head(head, drawn)
    if typed.strip() and not found:
        st.caption(f"{plain(title)}. {_searched(profile, None if everywhere else head)}")
    elif is_of(profile, model):
        _list(title, found, chance, model, profile.about.window)
    elif model.config.shape == "encoder-decoder":
        st.caption(f"{_OTHERS} What it would write for these texts is not known.")
    else:
        examples_list(examples.message(title, found, model, chance=chance, runs=False, opens=False))
        st.caption(
            f"{_OTHERS} So only the example's own arc is known, and the explorer cannot show it."
        )


def _found_title(of: str, typed: str, count: int) -> str:
    many = f"the {count} largest weights" if count == examples.SEARCHED else str(count or "none")
    return f"Examples of {of} from or to “{token_label(typed)}”: {many}"


def _searched(profile: Profile, head: Head | None) -> str:
    """Which examples a search goes through."""
    rows = profile.sums.examples.rows
    if head is None:
        return f"The search goes through the {len(rows):,} examples that the profile keeps."
    mine = int((rows["head"] == profile.sums.heads.index(head)).sum())
    return (
        f"The search goes through the {mine} examples that the profile keeps of this head; “{ALL}” searches "
        f"all {len(rows):,}."
    )


_OTHERS = "This profile is of other weights than the model of this name has now."


def is_of(profile: Profile, model: "Model") -> bool:
    """Whether a profile is of the weights that a model has."""
    return bool(model.runs) and weights_of(ref(model)) == profile.about.weights


def _list(
    title: str,
    found: Sequence[examples.Example],
    chance: Sequence[examples.Example],
    model: "Model",
    window: int,
) -> None:
    runs = st.toggle(
        "All arcs of each row",
        value=examples.runs_at_once(len(found) + len(chance), model, window),
        key=f"corpus-rows-{model.name}",
        help="The model runs on each of these texts. Without that, only the example's own arc is known.",
    )
    examples_list(examples.message(title, found, model, chance=chance, runs=runs))
    st.caption(
        "An arc is as wide as its weight, from the query (blue) to what it attends to; the example's own key "
        "is vermillion. Each example is from another window. The best alone mislead, so some by chance stand "
        "below them."
    )


def _explain(shown: Sequence[Source], profiles: Sequence[Profile]) -> None:
    said = "; ".join(
        f"**{plain(source.title)}**: {plain(profile.about.corpus_name)}, "
        f"{counted(profile.sums.windows, 'window')} of at most {profile.about.window} tokens, "
        f"{counted(profile.sums.tokens, 'token')}{_computed_by(profile)}"
        for source, profile in zip(shown, profiles, strict=True)
    )
    with st.expander("What was counted, and what the map shows", key="corpus-explained"):
        st.markdown(
            f"""
{said}.

- **The map** has the two directions in which the heads differ most (principal components). Each of these
  {len(FEATURES)} numbers counts alike, with mean 0 and variance 1 over all heads: {", ".join(FEATURES)}.
  Where a head lacks a number it has the mean. Two profiles share one map.
- **The table** has means over all rows that could give the number. “–”: no row could.
- **The mean map** divides each window into 16 × 16 parts.
- **The curve** joins far distances in groups, and shows the mean weight at one distance of each group.
"""
        )


def _computed_by(profile: Profile) -> str:
    versions = profile.about.versions
    return f", computed by {plain(', '.join(versions))}" if versions else ""


HEADS, OWN = "Heads", "A text of yours"  # the views


@st.fragment
@error_boundary()
def corpus(seen: Look) -> None:
    """The chosen view. A click in it leaves the rest of the page alone; one that opens another text or model
    draws the whole page."""
    if not still_asked(seen):
        st.rerun()
    known, shown = sources(), list[Source]()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="profiles"):
        choose_view((HEADS, OWN))
        if current().show == HEADS and known:
            shown = choose(known)
    if current().show == HEADS:
        heads(seen, shown)
    else:
        own_text(seen)
        offer_folder()
    write_link()
    tour.notice()
