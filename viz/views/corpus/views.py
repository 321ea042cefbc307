"""What a profile says of heads: one number of each over a corpus, and of one head its place among all weights
and its strongest examples."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np
import streamlit as st

from model.nn.places import Head, head_label
from model.profile.corpus_profile import Between, Profile
from model.profile.examples import CRITERIA
from model.profile.shipped import weights_of
from model.trace.arrays import Array
from model.trace.records import Attention
from viz.elements.one_of import one_listed, one_of
from viz.explorer.bundle import BUNDLED, component_script
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted, led_by, signed
from viz.notation.theme import QuantityName
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Panel, Part, Table
from viz.state.look import Look, labels_of, loaded
from viz.state.navigation import page_link
from viz.state.session import current
from viz.views.all_heads.choice import choose_family, head_names, of_heads, table_of
from viz.views.all_heads.patterns import grid
from viz.views.corpus import examples
from viz.views.corpus.choice import OWN, Source, choose, own_text, sources

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("corpus.views")

TITLES = {
    "weight": "Largest weight",
    "carried": "Most carried",
    "effect": "Largest effect",
    "chance": "By chance",
}
UNITS = {"carried": "carried", "effect": "effect"}
ALL = "of all heads"  # whose examples are searched
# The examples of a head are drawn in the browser.
_STYLE = (BUNDLED / "corpus.css").read_text(encoding="utf-8").replace("}", "}\n")
_examples_list = st.components.v2.component(
    "corpus_examples",
    html='<section class="corpus" data-ready="false"></section>',
    css=_STYLE,
    js=component_script("corpus.js"),
)
OTHERS = say("profile_other_weights")
WeightCell = tuple[int, int]


@dataclass(frozen=True)
class CorpusMeasure:
    """A number of every head in a profile: what it means, and how it is coloured."""

    name: str  # of its column
    title: str
    meaning: str
    quantity: QuantityName = "weight"


MEASURES = (
    CorpusMeasure("induction", "Induction", say("weight_followed_earlier")),
    CorpusMeasure("previous", "Previous token", say("weight_token_before")),
    CorpusMeasure("first", "First token", say("weight_first_token")),
    CorpusMeasure("same", "Same token", say("weight_other_occurrences")),
    CorpusMeasure("self", "Itself", say("weight_token_itself")),
    CorpusMeasure("next", "Next token", say("weight_token_after")),
    CorpusMeasure("punctuation", "Punctuation", say("weight_punctuation")),
    CorpusMeasure("delimiter", "Special tokens", say("weight_special_tokens")),
    CorpusMeasure("entropy", "Entropy", say("entropy_row_nats"), "score"),
    CorpusMeasure("distance", "Distance", say("distance_query_key"), "score"),
    CorpusMeasure(
        "carried",
        "Carried",
        say("sum_weight_times"),
        "stream",
    ),
    CorpusMeasure(
        "effect",
        "Effect",
        say("direct_effect_logit"),
        "difference",
    ),
)


def over_corpus(look: Look) -> Panel:
    """One number of each head, as a mean over all rows of a corpus that could give it."""
    family = choose_family(look)
    source = choose(sources(look.model.address))
    profile = source.profile
    table, heads = profile.heads.set_index(["layer", "head"]), family.heads(look.trace)
    rows = table.reindex(list(heads))
    known = [one for one in MEASURES if rows[one.name].notna().any()]
    titles = [one.title for one in known]
    measure = known[one_listed("Measure", titles, f"corpus-measure-{len(known)}")]
    values = rows[measure.name].to_numpy(float)
    ranked = np.nan_to_num(values, nan=-np.inf)
    leading, several = led_by(head_names(look, heads), ranked, decimals=2)
    most = np.nanmax(values)
    about = profile.about
    counts = say(
        "most_tokens",
        source=source.text,
        windows=profile.sums.windows,
        window=about.window,
        tokens=profile.sums.tokens,
    )
    by = f", computed by {plain(', '.join(about.versions))}" if about.versions else ""
    below: list[Part] = [Caption(say("head_without_number", counts=counts, by=by))]
    if not is_of(profile, look.model):
        below.insert(0, OTHERS)
    panel = Panel(
        f"corpus-{measure.name}",
        look_for=say(
            "over_largest",
            tokens=profile.sums.tokens,
            meaning=measure.meaning,
            leading=leading,
            most=most,
            choice=" each" if several else "",
        ),
        chosen=f"{source.title}-{measure.name}-",
        alt=say("every_head_over", measure=measure.title, most=most),
        below=[
            *below,
            partial(page_link, "pages/all_heads.py", say("profile_text_yours"), show=OWN),
        ],
        table=Table(
            table_of(look, heads, {one.title: rows[one.name].to_numpy(float) for one in known})
        ),
    )
    return of_heads(
        panel,
        look,
        family,
        values,
        quantity=measure.quantity,
        title=f"mean of {measure.title.lower()}",
        words=lambda value: (
            "no number" if np.isnan(value) else f"{measure.title.lower()}: {signed(f'{value:.4f}')}"
        ),
    )


def own_corpus(look: Look) -> Panel:
    """The heads, and beside them a text of the visitor's, of which a profile is made."""
    return replace(
        grid(look),
        look_for=say("profile_counts_every"),
        beside=[partial(own_text, look)],
    )


def examples_of(look: Look) -> list[Part]:
    """Of the chosen head: its weight among all over a corpus, and its examples there. Nothing for a model
    without a profile."""
    known, head = sources(look.model.address), (look.place, look.head)
    if not known:
        return []
    source = choose(known)
    profile = source.profile
    if head not in profile.sums.heads:
        return []
    title = f"**Over a corpus:** {counted(profile.sums.tokens, 'token')} of {plain(source.text)}"
    parts: list[Part] = [title, partial(_examples, source, profile, head)]
    if is_of(profile, look.model):
        parts.insert(0, beside_sentence(look, profile, head))
    return parts


def _examples(source: Source, profile: Profile, head: Head) -> None:
    """The head's strongest examples, or those with a token that was searched for."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="examples-of"):
        criterion = one_of(
            "Examples", list(CRITERIA), "corpus-criterion", named=TITLES.__getitem__, quiet=True
        )
        typed = st.text_input(
            "Search",
            key="corpus-search",
            placeholder=say("search_examples_token"),
            label_visibility="collapsed",
            width=280,
        )
        everywhere = st.toggle(ALL, key="corpus-everywhere") if typed else False
    model, name = loaded(source.model), head_label(head)
    chance: list[examples.CorpusExample] = []
    if wanted := typed.strip():
        listed = examples.with_token(profile, model, wanted, None if everywhere else head)
        full = len(listed) == examples.SEARCHED
        many = f"the {len(listed)} largest weights" if full else str(len(listed) or "none")
        of = "all heads" if everywhere else name
        title = say("examples", of=of, wanted=token_label(wanted), many=many)
        if not listed:
            rows = profile.sums.examples.rows
            mine = int((rows["head"] == profile.sums.heads.index(head)).sum())
            searched = (
                say("examples_profile_keeps", rows=len(rows))
                if everywhere
                else say("examples_profile_keeps_head", mine=mine, all=ALL, rows=len(rows))
            )
            st.caption(say("search_goes_through", title=title, searched=searched))
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
        st.caption(say("write_texts_not", others=OTHERS))
        return
    at_once = examples.runs_at_once(len(listed) + len(chance), model, profile.about.window)
    runs = same and st.toggle(
        say("arcs_row"),
        value=at_once,
        key=f"corpus-rows-{model.name}",
        help=say("model_runs_texts"),
    )
    block = examples.message(title, listed, model, chance=chance, runs=runs, opens=same)
    _examples_list(key="corpus-examples", data=block)
    st.caption(say("arc_wide_weight") if same else say("only_example_own", others=OTHERS))


def is_of(profile: Profile, model: "Model") -> bool:
    """Whether a profile is of the weights that a model has."""
    return bool(model.runs) and weights_of(ref(model)) == profile.about.weights


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
    return say(
        "sentence_weight_query",
        which=which,
        head_label=head_label(head),
        weight=weight,
        query_queries=queries[query],
        key_keys=keys[key],
        smaller=smaller,
        entropy=entropy,
        narrower=narrower,
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
