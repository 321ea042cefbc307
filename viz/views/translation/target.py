"""The reader's own French: what the model gives each word of it, and what it reads for it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import probabilities
from model.training.alignment import links_of, source_words, target_words
from viz.figures.alignment import alignment
from viz.figures.bars import Given, word_probabilities
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import nats, power_of_ten, probability, significant
from viz.shell.pictures import chart, checked, look_for, table
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, traced
from viz.state.session import change_view, current
from viz.views.translation.sentences import (
    TRANSLATOR,
    advise,
    french_groups,
    known_words,
    other_sentences,
)
from viz.views.translation.steps import FORCED, choose_cross_head, readout_of_lines, with_target

NAMES = ("read by the encoder", "your French")
_BOX, _TYPED, _TYPED_FOR = "encoder-target", "encoder-target-typed", "encoder-target-for"


def own_target(seen: Look) -> None:
    """The page's last view: teacher forcing with French of the reader's own."""
    lines, words = st.columns([3, 2], gap="large")
    with words:
        look_for(
            "Write your own French, right or wrong. The bars show the probability that the model "
            "gave to each word. A word that it did not expect has a short bar."
        )
        _box(seen)
        other_sentences(seen)
    typed = st.session_state[_BOX]
    refusal = _refusal(seen, typed) if typed.strip() else ""
    if refusal:
        words.error(plain(f"{refusal} Until then the model's own French is shown."))
        return
    look = with_target(seen, current().target)
    given, error = _given(look), rounding(look.trace)
    with words:
        if look.request.target is None:
            st.caption("You have not written any French yet; this is the model's own.")
        trace = look.trace
        links, target = links_of(trace), target_words(trace)
        attention, head = choose_cross_head(trace, links)
        st.markdown("**The probability of each word**")
        chart(word_probabilities(given, error), "encoder-forced")
        _product(look, given, with_target(seen, None))
        st.latex(FORCED)
        columns = {
            "word": [token_label(word.word) for word in given],
            "probability": [word.share for word in given],
            "model's first choice": [token_label(word.first) for word in given],
            "its probability": [word.first_share for word in given],
        }
        shares = dict.fromkeys(columns, f"%.{significant(error)}g")
        table(columns, "encoder-forced", formats=shares)
    with lines:
        weights, source = attention.weights(head)[: len(target)], source_words(trace)
        figure = alignment(weights, source=source, target=target, reference=links, names=NAMES)
        chart(figure, "encoder-forced-lines")
        readout_of_lines(trace, attention, head, 0)
    checked(look)


def _box(seen: Look) -> None:
    """The French, where the model's own can be taken as a beginning."""
    own = with_target(seen, None)
    models_own = seen.model.tokenizer.decode([token.id for token in own.trace.target_tokens[1:]])
    typed = st.session_state.get(_TYPED)
    if typed is None or st.session_state.get(_TYPED_FOR) != current().target:
        typed = current().target or ""  # a link, an example or another view decides
    st.session_state[_BOX] = typed
    st.text_input(
        "Your French",
        max_chars=TEXT_LIMIT,
        key=_BOX,
        on_change=_take,
        args=(seen,),
        placeholder=f"For instance: {models_own}",
    )
    take, clear = st.columns(2)
    take.button("Take the model's", key="encoder-take", width="stretch",
                on_click=_set, args=(models_own, models_own))  # fmt: skip
    clear.button("Use the model's own again", key="encoder-clear", width="stretch",
                 on_click=_set, args=("", None), disabled=current().target is None and not typed)  # fmt: skip
    if seen.model.name == TRANSLATOR:
        known_words(french_groups(), "French")
        advise(typed, french_groups(), "French")


def _take(seen: Look) -> None:
    """Keeps what was typed; it becomes the target where the model can read it."""
    typed: str = st.session_state[_BOX]
    readable = typed.strip() and not _refusal(seen, typed)
    _set(typed, typed if readable else None)


def _set(typed: str, target: str | None) -> None:
    st.session_state[_TYPED], st.session_state[_TYPED_FOR] = typed, target
    change_view(replace(current(), target=target))


def _refusal(seen: Look, target: str) -> str:
    """Why a target cannot be read; "" where it can."""
    try:
        traced(with_target(seen, target).request)
    except ValueError as refusal:
        return str(refusal)
    return ""


def _given(look: Look) -> tuple[Given, ...]:
    """Each word of the target and its end, with the model's own first choice."""
    trace = look.trace
    if trace.prediction is None:
        return ()
    shares = probabilities(trace.prediction.all)  # (query, vocabulary)
    end = look.model.tokenizer.end
    ids = [token.id for token in trace.target_tokens[1:]] + ([] if end is None else [end])
    firsts = shares.argmax(-1)
    named = look.model.tokenizer.named
    return tuple(
        Given(word.text, float(row[word.id]), first.text, float(row[first.id]))
        for word, first, row in zip(named(ids), named(firsts[: len(ids)].tolist()), shares, strict=False)
    )  # fmt: skip


def _product(look: Look, given: tuple[Given, ...], own: Look) -> None:
    """The probability of the whole, beside that of the model's own French."""
    error = rounding(look.trace)
    loss = -_logarithm(given) / len(given)
    sentence = (
        f"The product of all probabilities: **{product_in_words(given, error)}**, "
        f"a loss of {nats(loss, error)} nats per word."
    )
    if look.request.target is not None:
        french = look.model.tokenizer.decode([token.id for token in own.trace.target_tokens])
        best = product_in_words(_given(own), rounding(own.trace))
        sentence += f" The model's own, {plain(f'“{french}”')}: {best}."
    st.markdown(sentence)
    surprises = [word for word in given if not word.agrees]
    if surprises:
        word = min(surprises, key=lambda given: given.share)
        st.markdown(
            plain(
                f"The least expected is “{token_label(word.word)}”: {_in_words(word.share, error)}. The "
                f"model would have written “{token_label(word.first)}”: "
                f"{probability(word.first_share, error)}."
            )
        )


def product_in_words(given: Sequence[Given], error: float) -> str:
    """The product of the probabilities of some words. Its logarithm is a sum: the errors add up."""
    return _in_words(float(np.exp(_logarithm(given))), len(given) * error)


def _logarithm(given: Sequence[Given]) -> float:
    return float(sum(np.log(max(word.share, 1e-300)) for word in given))


def _in_words(share: float, error: float) -> str:
    if share >= 0.001:
        return probability(share, error)
    return power_of_ten(share, min(significant(error), 2))
