"""The views of an encoder–decoder: translation word by word, its alignment with the reference beneath it, its
three attentions, and teacher forcing with the reader's own French."""

import html
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import Sampling, probabilities
from model.nn.places import head_label
from model.trace.arrays import Array
from model.trace.records import Attention
from model.trace.trace import Trace
from model.training.alignment import (
    Links,
    aligning_head,
    crossings,
    heads_by_reference,
    links_of,
    reference_phrase,
    share_on_reference,
    shares_on_reference,
    source_words,
    target_words,
)
from viz.elements.one_of import one_listed, one_step
from viz.figures.alignment import alignment
from viz.figures.bars import GivenWord, word_probabilities
from viz.figures.heatmap import NARROW, headed, weights_of_head
from viz.figures.room import aligned_tops
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import (
    nats,
    power_of_ten,
    probability,
    significant,
)
from viz.notation.theme import KEY, PROBABILITY, QUERY, VALUE, rgba
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Check, Columns, Formula, Panel, Part, Table, draw_view
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, labels_of, traced
from viz.state.navigation import HOME, view_link
from viz.state.session import change_view, current, switch, write_link
from viz.views.prediction.next_token import bars_of, listed_ids, row_of
from viz.views.prediction.writing import GREEDY
from viz.views.translation.sentences import (
    TRANSLATOR,
    advise,
    french_groups,
    known_words,
    other_sentences,
    say_origin,
    worth_seeing,
)

say = sentences_of("translation.views")

# Formulas. X is the source's stream, Y the target's, E what the encoder hands over.


def projections(queries: str, others: str, *, bias: bool) -> str:
    """Which stream queries come from, and which keys and values."""
    parts = (("Q", QUERY, queries), ("K", KEY, others), ("V", VALUE, others))
    return r",\quad ".join(
        rf"{name} = \textcolor{{{colour}}}{{{stream}\,W_{name}{f' + b_{name}' if bias else ''}}}"
        for name, colour, stream in parts
    )


CROSS = (
    r"a_{f,e} = \mathrm{softmax}_e\!\left("
    rf"\frac{{\textcolor{{{QUERY}}}{{q_f}} \cdot \textcolor{{{KEY}}}{{k_e}}}}{{\sqrt{{d_k}}}}\right)"
)
ON_REFERENCE = (
    r"\text{on the reference} = \frac{1}{F} \sum_{f} \sum_{e\, \in\, \text{reference}(f)} a_{f,e}"
)
FORCED = r"p(\text{French}) = \prod_{f} p\left(w_f \mid w_{<f},\ \text{English}\right)"


def with_target(look: Look, target: str | None) -> Look:
    """The same look with another target; None: the model's own."""
    return replace(look, request=replace(look.request, target=target))


def whose_french() -> None:
    """Says that the reader's own French is shown, and leads back to the model's."""
    if current().target is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(say("own_french"))
            st.button(
                say("back_model_french"),
                key="encoder-own-target",
                on_click=lambda: change_view(replace(current(), target=None)),
            )


def choose_cross_head(trace: Trace, links: Links | None) -> tuple[Attention, int]:
    """A layer and a head that read the source, those that align best with the reference links
    first; both join the link. Where the view stands elsewhere, it is brought to `best_cross_head`."""
    shares = {
        (head.place, head.number): head.share for head in heads_by_reference(trace, links or ())
    }
    heads = list(dict.fromkeys([*shares, *_cross_heads(trace)]))
    if (current().place, current().head) not in heads:
        open_cross_head(best_cross_head(trace, links))
        write_link()

    def label(head: tuple[str, int]) -> str:
        name = head_label(head)
        return f"{name}, {shares[head]:.2f} aligned" if head in shares else name

    st.selectbox(
        "Head",
        heads,
        format_func=label,
        **switch("encoder-cross-head", (current().place, current().head), open_cross_head),
    )
    return trace.find(current().place), current().head


def open_cross_head(head: tuple[str, int]) -> None:
    change_view(replace(current(), place=head[0], head=head[1]))


def best_cross_head(trace: Trace, links: Links | None) -> tuple[str, int]:
    """The sub-layer and head that align best with the reference links; without any, the one that the
    model's card names, or the first."""
    ranked = heads_by_reference(trace, links or ())
    if ranked:
        return ranked[0].place, ranked[0].number
    named, heads = aligning_head(trace.model), _cross_heads(trace)
    return named if named in heads and named is not None else heads[0]


def _cross_heads(trace: Trace) -> list[tuple[str, int]]:
    return [
        (attention.name, head)
        for attention in trace.attention
        if attention.kind == "cross"
        for head in range(attention.heads)
    ]


LISTED = 5
NAMES = (say("read_encoder"), say("written_decoder"))
SECONDS = 1.2  # between two steps that play by themselves
_STEP, _READ, _PLAYING = "encoder-step", "encoder-step-of", "encoder-playing"
_LINE = "font-size:28px;line-height:1.4;overflow-wrap:anywhere;margin:0"
_NEW = f"background:{rgba(PROBABILITY, 0.28)};color:inherit;border-radius:3px;padding-inline:3px"


def translate(look: Look) -> Panel:
    """The French comes out word by word, by itself or step by step."""
    own = with_target(look, None)
    if st.session_state.get(_READ) != own.request or _STEP not in st.session_state:
        crossed = crossings(links_of(own.trace) or ())
        opening = crossed[0][1] + 1 if crossed else 1  # the first two words have changed places
        st.session_state.update({_READ: own.request, _STEP: opening, _PLAYING: False})
    other_sentences(look)
    choose_cross_head(own.trace, links_of(own.trace))
    playing = bool(st.session_state.get(_PLAYING))
    drawn = st.fragment(draw_view, run_every=SECONDS if playing else None)
    return Panel(
        "encoder-translate",
        look_for=worth_seeing(look.request.text, look.request.model) or say("step_adds_marked"),
        below=[partial(drawn, _step, own, playing)],
    )


def _step(look: Look, timed: bool) -> Panel:
    """The lines of the words so far; beside them what the model expects. timed: whether the part of the page
    is drawn again by itself."""
    trace = look.trace
    if trace.prediction is None:
        raise ValueError(f"{trace.model} predicts no next word.")
    end = int(trace.prediction.after(-1).argmax())
    whole = (*(token.id for token in trace.target_tokens[1:]), end)
    _move_on(len(whole), timed=timed)
    step = st.session_state[_STEP] = min(st.session_state[_STEP], len(whole))
    attention, head = trace.find(current().place), current().head
    ids, weights = whole[:step], attention.weights(head)[:step]
    named = [token_label(word) for word in source_words(trace)]
    texts = [word.text for word in look.model.tokenizer.named(ids)]
    *before, new = map(token_label, texts)
    marked = f'<mark style="{_NEW}"><b><u>{html.escape(new)}</u></b></mark>'
    french = f'<p style="{_LINE}">{html.escape(" ".join([*before, ""]))}{marked}</p>'
    row = row_of(trace, trace.prediction.after(step - 1), Sampling())
    most = int(weights[-1].argmax())
    share = f"{weights[-1][most]:.4f}"
    return Panel(
        "encoder-reads",
        picture=alignment(
            weights,
            source=source_words(trace),
            target=texts,
            chosen=step - 1,
            names=NAMES,
            rows=len(whole),
        ),
        beside=[
            partial(st.html, french),
            say("model_expects"),
            bars_of(look, row, "encoder-expected", listed_ids(row, LISTED, ids[-1]), ids[-1]),
            Formula(GREEDY),
        ],
        below=[
            partial(_scrubber, len(whole)),
            plain(say("write_head_puts", new=new, share=share, most_named=named[most])),
            say_origin,
        ],
        check=_alike(look, ids[: step - 1]) if look.model.runs else None,
        table=Table({"to write": new, "it reads": named, "weight": weights[-1]}),
    )


def _scrubber(last: int) -> None:
    """Below the picture: plays the words of the translation, or leads through them."""
    with st.container(horizontal=True, vertical_alignment="center", key="encoder-scrubber"):
        name = "Stop" if st.session_state.get(_PLAYING) else "▶ Play"
        st.button(name, "encoder-play", on_click=_play, disabled=last == 1)
        one_step(_STEP, last, _go)


def _move_on(last: int, *, timed: bool) -> None:
    """One step further while it plays. The timer belongs to the page, which is drawn anew to start
    and to stop it."""
    state = st.session_state
    playing = bool(state.get(_PLAYING))
    if playing and timed and state[_STEP] < last:
        state[_STEP] += 1
    if playing and state[_STEP] >= last:
        state[_PLAYING] = False
    if timed != bool(state[_PLAYING]):
        st.rerun()


def _go(step: int) -> None:
    st.session_state.update({_PLAYING: False, _STEP: step})


def _play() -> None:
    st.session_state[_PLAYING] = not st.session_state.get(_PLAYING)
    if st.session_state[_PLAYING]:
        st.session_state[_STEP] = 0  # the first step follows at once


def _alike(look: Look, before: tuple[int, ...]) -> Check | None:
    """The check of a step: reading only the words before it gives the same row."""
    run = traced(replace(look.request, target="", continued=before))
    same_words = run.target_tokens == look.trace.target_tokens[: len(before) + 1]
    whole, alone = look.trace.prediction, run.prediction
    if whole is None or alone is None or not same_words:
        return None
    apart = float(np.abs(whole.after(len(before)) - alone.after(-1)).max())
    return Check(
        say("check_decoder_ran", apart=apart),
        apart,
    )


def show_alignment(look: Look) -> Panel:
    """The weights of a head between the words, for the model's own French or the reader's."""
    look = with_target(look, current().target)
    trace = look.trace
    source, target, links = source_words(trace), target_words(trace), links_of(trace)
    other_sentences(look)
    attention, head = choose_cross_head(trace, links)
    weights = attention.weights(head)[: len(target)]
    names = ["all words", *(f"{token_label(word)} ({at})" for at, word in enumerate(target))]
    chosen = one_listed(say("show_lines"), names, "encoder-alignment-word") - 1
    model = look.request.model if current().target is None else ""
    most = weights.argmax(-1)
    columns: dict[str, object] = {
        "word": [token_label(word) for word in target],
        "attends most to": [token_label(source[at]) for at in most],
        "weight": weights[np.arange(len(target)), most],
    }
    on_reference: list[Part] = []
    if links is not None:
        columns["reference"] = [" ".join(source[at] for at in link) or "—" for link in links]
        columns[say("weight_reference")] = shares_on_reference(weights, links)
        on_reference = [Formula(ON_REFERENCE)]
    return Panel(
        "encoder-alignment",
        look_for=worth_seeing(look.request.text, model) or say("lines_cross_languages"),
        picture=alignment(
            weights,
            source=source,
            target=target,
            reference=links,
            chosen=chosen if chosen >= 0 else None,
            names=NAMES,
        ),
        beside=[
            whose_french,
            *(_shares(weights, links, source, target) if links is not None else []),
            *_grammar(source, target),
            Formula(CROSS),
            *on_reference,
        ],
        below=[
            Caption(say("lines_word_show")),
            say_origin,
        ],
        check=_recomputed(trace),
        table=Table(columns),
    )


def _shares(
    weights: Array, links: Links, source: Sequence[str], target: Sequence[str]
) -> list[Part]:
    """How much of the weight lies on the reference, word by word for those that changed places.

    Args:
        weights: of a head, (word of the target, word of the source).
        links: the reference.
        source: its words.
        target: its words.
    """
    mean = share_on_reference(weights, links)
    if mean is None:
        return []
    shares = shares_on_reference(weights, links)
    count = sum(share is not None for share in shares)
    parts: list[Part] = [say("head_puts_weight", mean=mean, count=count)]
    for one, other in crossings(links):
        pair = " ".join(source[at] for at in sorted({*links[one], *links[other]}))
        parts.append(
            plain(
                say(
                    "becomes_reference_lines",
                    pair=pair,
                    one_target=target[one],
                    other_target=target[other],
                    value=shares[one] or 0,
                    shares_value=shares[other] or 0,
                )
            )
        )
    return parts


def _grammar(source: tuple[str, ...], target: tuple[str, ...]) -> list[Part]:
    """What the grammar says where that is not what is shown."""
    phrase = reference_phrase(source)
    if phrase is None:
        return [Caption(say("grammar_cannot_make"))]
    if phrase.french == target:
        return []
    french = " ".join(phrase.french)
    return [Caption(plain(say("grammar_gives_words", french=french)))]


def _recomputed(trace: Trace) -> Check:
    found = trace.check()
    return Check(
        say("check_attention_outputs", found=found),
        found,
    )


ATTENTIONS = {  # stack and kind of the sub-layers
    "Encoder self-attention": ("encoder", "self"),
    say("masked_decoder_self"): ("decoder", "self"),
    "Cross-attention": ("decoder", "cross"),
}


def three_attentions(look: Look) -> Panel:
    """The three kinds of attention of one layer, side by side, in the head of the same number."""
    look = with_target(look, current().target)
    trace, links = look.trace, links_of(look.trace)
    other_sentences(look)
    cross, head = choose_cross_head(trace, links)
    maps, figures, links_below = [], [], []
    for title, (stack, kind) in ATTENTIONS.items():
        those = [one for one in trace.attention if one.stack == stack and one.name.endswith(kind)]
        attention = those[min(cross.layer, len(those) - 1)]
        number = min(head, attention.heads - 1)
        queries, keys = labels_of(trace, attention)
        figure = weights_of_head(attention, number, queries=queries, keys=keys, fitting=NARROW)
        view = replace(current(), place=attention.name, head=number, show="")
        words = f"{head_label((attention.name, number))}, step by step →"
        check = _recomputed(trace) if kind == "cross" else None
        figures.append(headed(figure, title))
        maps.append(Panel(f"encoder-{stack}-{kind}", picture=figures[-1], check=check))
        links_below.append(partial(view_link, HOME, words, view))
    aligned_tops(figures)
    most = int(cross.weights(head)[0].argmax())
    first = target_words(trace)[:1]
    reads = (
        say("write_reads", first_first=first[0], most_source_words=source_words(trace)[most])
        if first
        else ""
    )
    return Panel(
        "encoder-attentions",
        look_for=plain(say("source_attends_itself", reads=reads)),
        picture=Columns(maps),
        below=[Columns(links_below), whose_french, say_origin],
    )


_BOX, _TYPED, _TYPED_FOR = "encoder-target", "encoder-target-typed", "encoder-target-for"


def own_target(look: Look) -> Panel:
    """Teacher forcing with French of the reader's own: what the model gives each word of it."""
    own = with_target(look, None)
    typed = _box(look, own)
    other_sentences(look)
    known: list[Part] = [say_origin]
    if look.model.name == TRANSLATOR:
        known += [
            partial(known_words, french_groups(), "French"),
            partial(advise, typed, french_groups(), "French"),
        ]
    wanted = say("write_french_right")
    target, refusal = current().target, _refusal(look, typed) if typed.strip() else ""
    if refusal:
        words = plain(say("until_model_own", refusal=refusal))
        return Panel("encoder-forced", look_for=wanted, below=[words, *known])
    if target is None:
        target = _in_english_order(own)
        known.append(
            Caption(say("not_written_any") if target is None else say("not_written_any_french"))
        )
    look = with_target(look, target)
    trace = look.trace
    given, error = _given(look), rounding(trace)
    links, words_of_target = links_of(trace), target_words(trace)
    attention, head = choose_cross_head(trace, links)
    columns = {
        "word": [token_label(word.word) for word in given],
        "probability": [word.share for word in given],
        "model's first choice": [token_label(word.first) for word in given],
        "its probability": [word.first_share for word in given],
    }
    lines = Panel(
        "encoder-forced-lines",
        picture=alignment(
            attention.weights(head)[: len(words_of_target)],
            source=source_words(trace),
            target=words_of_target,
            reference=links,
            names=(say("read_encoder"), "your French"),
        ),
    )
    return Panel(
        "encoder-forced",
        look_for=wanted,
        picture=word_probabilities(given, error),
        beside=[*_product(look, given, own), lines, Formula(FORCED), *known],
        check=_recomputed(trace),
        table=Table(columns, formats=dict.fromkeys(columns, f"%.{significant(error)}g")),
    )


def _in_english_order(own: Look) -> str | None:
    """The model's own French with two words that changed places put back; None where none did."""
    trace = own.trace
    crossed = crossings(links_of(trace) or ())
    if not crossed:
        return None
    one, other = crossed[0]
    ids = [token.id for token in trace.target_tokens[1:]]
    ids[one], ids[other] = ids[other], ids[one]
    swapped = own.model.tokenizer.decode(ids)
    return None if _refusal(own, swapped) else swapped


def _box(look: Look, own: Look) -> str:
    """The French, where the model's own can be taken as a beginning. own: the look with that one."""
    models_own = look.model.tokenizer.decode([token.id for token in own.trace.target_tokens[1:]])
    typed = st.session_state.get(_TYPED)
    if typed is None or st.session_state.get(_TYPED_FOR) != current().target:
        typed = current().target or ""  # a link, an example or another view decides
    st.session_state[_BOX] = typed
    st.text_input(
        "Your French",
        max_chars=TEXT_LIMIT,
        key=_BOX,
        on_change=_take,
        args=(look,),
        placeholder=f"For instance: {models_own}",
    )
    st.button("Take the model's", key="encoder-take", on_click=_set, args=(models_own, models_own))
    return str(typed)


def _take(look: Look) -> None:
    """Keeps what was typed; it becomes the target where the model can read it."""
    typed: str = st.session_state[_BOX]
    readable = typed.strip() and not _refusal(look, typed)
    _set(typed, typed if readable else None)


def _set(typed: str, target: str | None) -> None:
    st.session_state[_TYPED], st.session_state[_TYPED_FOR] = typed, target
    change_view(replace(current(), target=target))


def _refusal(look: Look, target: str) -> str:
    """Why a target cannot be read; "" where it can."""
    try:
        traced(with_target(look, target).request)
    except ValueError as refusal:
        return str(refusal)
    return ""


def _given(look: Look) -> tuple[GivenWord, ...]:
    """Each word of the target and its end, with the model's own first choice."""
    trace = look.trace
    if trace.prediction is None:
        return ()
    shares = probabilities(trace.prediction.all)  # (query, vocabulary)
    end = look.model.tokenizer.end
    ids = [token.id for token in trace.target_tokens[1:]] + ([] if end is None else [end])
    named, firsts = look.model.tokenizer.named, shares.argmax(-1)[: len(ids)].tolist()
    return tuple(
        GivenWord(word.text, float(row[word.id]), first.text, float(row[first.id]))
        for word, first, row in zip(named(ids), named(firsts), shares, strict=False)
    )


def _product(look: Look, given: tuple[GivenWord, ...], own: Look) -> list[Part]:
    """The probability of the whole, beside that of the model's own French."""
    error = rounding(look.trace)
    loss = -_logarithm(given) / len(given)
    sentence = say(
        "product_probabilities_loss",
        product_in_words=product_in_words(given, error),
        loss=nats(loss, error),
    )
    if look.request.target is not None:
        french = look.model.tokenizer.decode([token.id for token in own.trace.target_tokens])
        best = product_in_words(_given(own), rounding(own.trace))
        sentence += f" The model's own, {plain(f'“{french}”')}: {best}."
    surprises = [word for word in given if not word.agrees]
    if not surprises:
        return [sentence]
    word = min(surprises, key=lambda given: given.share)
    least = say(
        "least_expected_model",
        word=token_label(word.word),
        in_words=_in_words(word.share, error),
        first=token_label(word.first),
        first_share=probability(word.first_share, error),
    )
    return [sentence, plain(least)]


def product_in_words(given: Sequence[GivenWord], error: float) -> str:
    """The product of the probabilities of some words. Its logarithm is a sum: the errors add up."""
    return _in_words(float(np.exp(_logarithm(given))), len(given) * error)


def _logarithm(given: Sequence[GivenWord]) -> float:
    return float(sum(np.log(max(word.share, 1e-300)) for word in given))


def _in_words(share: float, error: float) -> str:
    if share >= 0.001:
        return probability(share, error)
    return power_of_ten(share, min(significant(error), 2))
