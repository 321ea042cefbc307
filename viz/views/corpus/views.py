"""What the page "Heads over a corpus" shows of one or two profiles, beside the visitor's sentence."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np
import streamlit as st

from model.loading.registry import may_be_linked, models
from model.nn.places import Head, head_label
from model.profile.battery import BY_NAME
from model.profile.corpus_profile import Between, Profile
from model.profile.examples import CRITERIA
from model.profile.projection import FEATURES
from model.profile.shipped import weights_of
from model.trace.arrays import Array
from model.trace.records import Attention
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_of
from viz.explorer.bundle import BUNDLED
from viz.notation.head_labels import NOTES, verdicts_in_words
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import counted
from viz.shell.panel import Caption, Panel, Part
from viz.state.look import Look, labels_of, loaded
from viz.state.session import change_view, current
from viz.views.corpus import examples, message
from viz.views.corpus.choice import Source, choose, sources

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
# Map, table and card of all heads, and the examples of one, are drawn in the browser. A click is answered
# there; Python is told of it, and sends the examples of the chosen head.
_SCRIPT = (BUNDLED / "corpus.js").read_text(encoding="utf-8")
_STYLE = (BUNDLED / "corpus.css").read_text(encoding="utf-8").replace("}", "}\n")
_map, _examples_list = (
    st.components.v2.component(
        f"corpus_{part}",
        html=f'<section class="corpus" data-part="{part}" data-ready="false"></section>',
        css=_STYLE,
        js=_SCRIPT,
    )
    for part in ("map", "examples")
)
HEADS, OWN = "Heads", "A text of yours"  # the views
OTHERS = "This profile is of other weights than the model of this name has now."
WeightCell = tuple[int, int]


def heads(look: Look) -> Panel:
    """The map, the table and one head's card; then the visitor's sentence and the head's examples."""
    known = sources()
    if not known:
        raise NotShownError(
            f"No profile ships with this copy. Make one of a text of yours under “{OWN}”."
        )
    shown = choose(known)
    profiles, titles = [source.profile for source in shown], tuple(source.title for source in shown)
    start = _start(titles, profiles[0])
    chosen, at, head = st.session_state.get(_CHOSEN, ((), 0, 0))
    if chosen != titles:
        at, head = 0, start
    profile, name = profiles[at], profiles[at].sums.heads[head]
    block = _block(titles, tuple(profiles), start)
    if is_of(profile, look.model):
        sentence: Part = beside_sentence(look, profile, name)
    else:
        same = look.model.address == profile.about.model
        theirs = plain(models.short_title(profile.about.model))
        sentence = Caption(
            f"Your sentence is read by {plain(look.title)}, and this profile is of "
            f"{'other weights of it' if same else theirs}: they cannot be compared."
        )
    return Panel(
        "corpus",
        picture=partial(heads_map, block, partial(_take, titles, profiles)),
        below=[
            sentence,
            partial(_examples, shown[at], profile, name),
            partial(_explain, shown, profiles),
        ],
    )


def heads_map(block: bytes, chosen: Callable[[int, int], object]) -> None:
    """Draws map, table and card of `message`. chosen: takes the profile and the head that was clicked."""
    key = "corpus-map"

    def take() -> None:
        match st.session_state[key].get("chosen"):
            case {"profile": int(at), "head": int(head)}:
                chosen(at, head)

    _map(key=key, data=block, on_chosen_change=take)


@lru_cache(maxsize=4)
def _block(titles: tuple[str, ...], profiles: tuple[Profile, ...], start: int) -> bytes:
    shown = [
        message.ShownProfile(title, profile, labels_of_heads(profile))
        for title, profile in zip(titles, profiles, strict=True)
    ]
    return message.message(shown, start)


def labels_of_heads(profile: Profile) -> tuple[message.Label | None, ...]:
    """The name of each head that has one, as `Profile.label` gives it, with both verdicts."""
    best: dict[Head, message.Label] = {}
    for row in profile.given.to_dict("records"):
        kind = BY_NAME[row["label"]]
        note = NOTES.get(row["does"], "") if kind.does and not row["earned"] else ""
        label = message.Label(kind.title, verdicts_in_words(row), note)
        best.setdefault((row["layer"], row["head"]), label)
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


def _examples(source: Source, profile: Profile, head: Head) -> None:
    """The head's strongest examples, or those with a token that was searched for."""
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
    model, name = loaded(source.model), head_label(head)
    chance: list[examples.CorpusExample] = []
    if wanted := typed.strip():
        listed = examples.with_token(profile, model, wanted, None if everywhere else head)
        full = len(listed) == examples.SEARCHED
        many = f"the {len(listed)} largest weights" if full else str(len(listed) or "none")
        of = "all heads" if everywhere else name
        title = f"Examples of {of} from or to “{token_label(wanted)}”: {many}"
        if not listed:
            rows = profile.sums.examples.rows
            mine = int((rows["head"] == profile.sums.heads.index(head)).sum())
            searched = (
                f"the {len(rows):,} examples that the profile keeps."
                if everywhere
                else f"the {mine} examples that the profile keeps of this head; “{ALL}” searches all "
                f"{len(rows):,}."
            )
            st.caption(f"{plain(title)}. The search goes through {searched}")
            return
    else:
        chosen = profile.examples(head, criterion)
        listed = examples.of_head(head, chosen, UNITS.get(criterion, ""))
        title = f"Examples of {name}: {TITLES[criterion].lower()}"
        if criterion != "chance":
            drawn = profile.examples(head, "chance").head(examples.BY_CHANCE)
            chance = examples.of_head(head, drawn)
    same = is_of(profile, model)
    if not same and model.config.shape == "encoder-decoder":
        st.caption(f"{OTHERS} What it would write for these texts is not known.")
        return
    at_once = examples.runs_at_once(len(listed) + len(chance), model, profile.about.window)
    runs = same and st.toggle(
        "All arcs of each row",
        value=at_once,
        key=f"corpus-rows-{model.name}",
        help="The model runs on each of these texts. Without that, only the example's own arc is known.",
    )
    block = examples.message(title, listed, model, chance=chance, runs=runs, opens=same)
    _examples_list(key="corpus-examples", data=block)
    st.caption(
        "An arc is as wide as its weight, from the query (blue) to what it attends to; the example's own key "
        "is vermillion. Each example is from another window. The best alone mislead, so some by chance stand "
        "below them."
        if same
        else f"{OTHERS} So only the example's own arc is known, and the explorer cannot show it."
    )


def is_of(profile: Profile, model: "Model") -> bool:
    """Whether a profile is of the weights that a model has."""
    return bool(model.runs) and weights_of(ref(model)) == profile.about.weights


def _explain(shown: Sequence[Source], profiles: Sequence[Profile]) -> None:
    counts = []
    for source, profile in zip(shown, profiles, strict=True):
        counts.append(
            f"**{plain(source.title)}**: {plain(profile.about.corpus_name)}, "
            f"{counted(profile.sums.windows, 'window')} of at most {profile.about.window} tokens, "
            f"{counted(profile.sums.tokens, 'token')}"
        )
        if versions := profile.about.versions:
            counts[-1] += f", computed by {plain(', '.join(versions))}"
    with st.expander("What was counted, and what the map shows", key="corpus-explained"):
        st.markdown(
            f"""
{"; ".join(counts)}.

- **A label** has two verdicts, both on prompts of known structure: where the head looks, and what becomes of
  the right next token's logit without it. A head can look at a name and make it less likely.
- **The map** has the two directions in which the heads differ most (principal components). Each of these
  {len(FEATURES)} numbers counts alike, with mean 0 and variance 1 over all heads: {", ".join(FEATURES)}.
  Where a head lacks a number it has the mean. Two profiles share one map.
- **The table** has means over all rows that could give the number. “–”: no row could.
- **The mean map** divides each window into 16 × 16 parts.
- **The curve** joins far distances in groups, and shows the mean weight at one distance of each group.
"""
        )


def beside_sentence(look: Look, profile: Profile, head: Head) -> str:
    """Two sentences in Markdown: of the chosen cell, or of the strongest where another head is chosen, and of
    its row."""
    attention = look.trace.find(head[0])
    weights = attention.weights(head[1])
    view, mask = current(), attention.mask_of(head[1])
    cell = (view.query, view.key)
    is_there = view.query < weights.shape[0] and view.key < weights.shape[1]
    if (view.place, view.head) == head and is_there and (mask is None or mask[cell]):
        (query, key), which = cell, "the chosen cell"
    else:
        (query, key), which = strongest(weights, attention), "the strongest cell"
    weight, row = float(weights[query, key]), weights[query].astype(np.float64)
    queries, keys = labels_of(look.trace, attention)
    row = row[row > 0]  # a sink counts for nothing
    entropy = max(0.0, -float((row * np.log(row)).sum()))
    smaller = percent(profile.percentile(head, weight))
    narrower = percent(profile.entropy_percentile(head, entropy))
    return (
        f"**In your sentence**, {which} of {head_label(head)} has the weight {weight:.2f} (query "
        f"{bold_token(queries[query])} → key {bold_token(keys[key])}): larger than **{smaller}** of the "
        f"weights that this head gives over the corpus. Its row has an entropy of {entropy:.2f} nats: more "
        f"than {narrower} of this head's rows."
    )


def strongest(weights: Array, attention: Attention) -> WeightCell:
    """The largest weight on another token than itself and the first, as the examples are found; the largest
    of all where there is none."""
    others = weights.copy()
    if attention.kind != "cross":
        others[:, 0] = 0
        np.fill_diagonal(others, 0)
    if not others.any():
        others = weights
    query, key = np.unravel_index(int(others.argmax()), others.shape)
    return int(query), int(key)


def percent(share: Between) -> str:
    """Rounded down, so that "100 %" means all: 0.9996 is "99.9 %"; "18.8 to 76.6 %" where the counts of a
    profile leave it open."""
    least, most = (np.floor(share[0] * 1000 + 1e-9), np.ceil(share[1] * 1000 - 1e-9))
    if share[0] == share[1]:
        return f"{least / 10:.1f} %"
    return f"{least / 10:.1f} to {most / 10:.1f} %"
