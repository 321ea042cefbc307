"""One word cut into tokens step by step: byte pairs merged by rank, or the longest piece first."""

import html
from collections.abc import Sequence

import streamlit as st

from model.hub.tokenizer import HubTokenizer
from model.run.tokenizers import GPT2Subset, Words, gpt2, spelled
from model.run.word_cuts import LONGEST, SPELLED, Step, WordCut, whole_gpt2, word_cut, words_of
from viz.elements.one_of import one_listed
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import counted
from viz.notation.theme import KEY, STREAM, rgba
from viz.shell.pictures import look_for
from viz.state.look import Look

_LIST = "display:flex;flex-direction:column;gap:5px;padding:0;margin:0;list-style:none"
_ROW = "display:flex;flex-wrap:wrap;gap:3px;align-items:center;margin:0;padding:0"
_BOX = (
    "padding:1px 6px;border-radius:4px;font-family:monospace;overflow-wrap:anywhere;max-width:100%"
)
_SAID = "font-size:0.8rem;opacity:0.8;margin-left:6px"


def word_steps(seen: Look) -> None:
    """The steps for a chosen word of the sentence."""
    tokenizer, text = seen.model.tokenizer, seen.request.text
    own = bool(words_of(tokenizer, text))
    if not own:
        tokenizer = whole_gpt2()
    words = words_of(tokenizer, text)
    if not words:
        st.info("There is no text here, so there is no word to cut.")
        return
    picture, side = st.columns([3, 2], gap="large")
    with side:
        fitting = [len(word.encode()) * (len(word.encode()) <= LONGEST) for word in words]
        number = one_listed(
            "Word", numbered_labels(words), "word-steps", first=fitting.index(max(fitting))
        )
    try:
        cut = word_cut(tokenizer, text, number)
    except ValueError as refusal:
        picture.info(plain(str(refusal)))
        return
    with picture:
        st.html(_rows(cut.steps))
    with side:
        look_for(_merges(cut) if cut.kind == "merges" else _longest(cut))
        if not own:
            st.markdown(plain(f"{seen.title} {_other(seen)} This is GPT-2's tokenizer."))
        elif isinstance(tokenizer, GPT2Subset):
            st.markdown(_kept(seen.title, tokenizer, cut))
        _check(cut)


def _rows(steps: Sequence[Step]) -> str:
    rows = "".join(
        f'<li style="{_ROW}">{"".join(_box(piece, at == step.at) for at, piece in enumerate(step.pieces))}'
        f'<span style="{_SAID}">{_said(step)}</span></li>'
        for step in steps
    )
    return f'<ol style="{_LIST}" aria-label="Steps">{rows}</ol>'


def _box(piece: bytes | str, new: bool) -> str:
    paint = (
        f"border:1px solid {KEY};background:{rgba(KEY, 0.14)}"
        if new
        else f"border:1px solid transparent;background:{rgba(STREAM, 0.14)}"
    )
    return f'<span style="{_BOX};{paint}">{html.escape(token_label(_text(piece)))}</span>'


def _text(piece: bytes | str) -> str:
    return spelled(piece) if isinstance(piece, bytes) else piece


def _said(step: Step) -> str:
    return step.note if step.rank is None else f"rank {step.rank:,}"


def _merges(cut: WordCut) -> str:
    start = f"The word begins as {counted(len(cut.steps[0].pieces), 'piece')}, one for each byte."
    merges = [place for place, step in enumerate(cut.steps) if step.rank is not None]
    if not merges:
        return f"{start} No two neighbours are a pair of the list, so nothing is merged."
    before, first = cut.steps[merges[0] - 1].pieces, cut.steps[merges[0]]
    at = first.at or 0
    left, right = (bold_token(_text(piece)) for piece in before[at : at + 2])
    return (
        f"{start} In each step, of all pairs of neighbours, the one with the lowest rank is merged: the "
        f"pair that was learned first. Here that is {left} and {right}, with rank {first.rank:,}. After "
        f"{counted(len(merges), 'merge')} no two neighbours are a pair of the list."
    )


def _longest(cut: WordCut) -> str:
    return (
        "From what is left of the word, the longest piece that the vocabulary has is taken, framed here; "
        f"`##` marks a piece that continues a word. That gives {counted(len(cut.own), 'token')}."
    )


def _other(seen: Look) -> str:
    """How a tokenizer cuts words whose steps are not shown."""
    tokenizer = seen.model.tokenizer
    if isinstance(tokenizer, Words):
        return "looks up whole words and cuts none."
    if isinstance(tokenizer, HubTokenizer) and tokenizer.is_unigram:
        return (
            "has a unigram tokenizer: of all ways to cut a word into pieces of its list it takes the most "
            "probable one, without merges, so there are no steps to show."
        )
    return "cuts words in a way whose steps are not shown here."


def _kept(name: str, tokenizer: GPT2Subset, cut: WordCut) -> str:
    said = (
        f"{plain(name)} keeps {len(tokenizer.kept):,} of GPT-2's {gpt2().n_vocab:,} tokens. GPT-2 merges "
        "with all of them"
    )
    if cut.steps[-1].note != SPELLED:
        return f"{said}; this word's tokens are among those that are kept."
    return f"{said}, and what this model has not kept it then spells in single bytes: the last row."


def _check(cut: WordCut) -> None:
    if cut.agrees:
        st.caption("Check: the last row is what the tokenizer itself makes of this word.")
        return
    own = " ".join(token_label(_text(piece)) for piece in cut.own)
    st.warning(
        plain(
            f"The tokenizer itself makes {own} of this word: it has rules that are not shown here."
        )
    )
