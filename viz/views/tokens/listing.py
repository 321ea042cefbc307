"""The tokens of the sentence as boxes with ids and bytes, the same text cut by another tokenizer, and one
word cut step by step."""

import html
from collections.abc import Sequence
from functools import partial

import streamlit as st

from model.hub.tokenizer import HubTokenizer
from model.loading.bert import word_pieces
from model.loading.registry import OWN_BERT, models
from model.run.tokenizers import (
    GPT2Subset,
    Piece,
    WordTokenizer,
    gpt2,
    gpt2_tokens,
    pieces,
    spelled,
)
from model.run.word_cuts import LONGEST, SPELLED, CutStep, WordCut, whole_gpt2, word_cut, words_of
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed, one_of
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import counted
from viz.notation.theme import KEY, MASKED, STREAM, rgba
from viz.shell.panel import Caption, Columns, Panel, Part, Table, refusals
from viz.shell.pictures import look_for
from viz.state.look import Look

UNKNOWN = "[UNK]"  # of word pieces
MANY = 90  # tokens; a longer row scrolls
GPT2_NAME = "GPT-2, its whole vocabulary"
_ROW = "display:flex;flex-wrap:wrap;gap:4px;padding:0;margin:0;list-style:none"
_BOX = (
    "display:flex;flex-direction:column;align-items:center;padding:4px 7px;margin:0;"
    "border-radius:4px;font-family:monospace;max-width:13rem;min-width:2.2rem"
)
_SMALL = "font-size:13px;opacity:0.8;text-align:center;overflow-wrap:anywhere"
_TINTS = (rgba(STREAM, 0.20), rgba(STREAM, 0.09))


def token_list(look: Look) -> Panel:
    """The tokens that the model reads."""
    own = pieces(look.trace.tokens)
    legend = "Each box shows the token's text, its id, and its bytes in hexadecimal."
    if not any(piece.hexadecimal for piece in own):
        legend = (
            "Each box shows the token's text and its id. This tokenizer works on characters, not "
            "bytes."
        )
    if any(piece.token.special for piece in own):
        legend += " Dashed boxes are tokens that the tokenizer added."
    if separator := look.model.config.separator:
        (between,) = look.model.tokenizer.named([separator])
        legend += f" Write {between.text} between two sentences to read them as a pair."
    return Panel(
        "tokens-own",
        look_for=_surprise(look, own),
        picture=partial(strip, own, "tokens-own", "Tokens of your sentence"),
        beside=[Caption(plain(legend))],
        table=_table(own),
    )


def two_tokenizers(look: Look) -> Panel:
    """The same text cut by GPT-2's tokenizer, and by the model's own or one of word pieces."""
    text = look.request.text
    offered = {"own": f"{look.title}, the chosen model"}
    others = word_pieces()
    if others is not None and look.model.name != OWN_BERT:
        offered[OWN_BERT] = f"{models[OWN_BERT].title}, word pieces"
    chosen = "own"
    if len(offered) > 1:
        label = "Compare GPT-2's tokenizer with that of"
        chosen = one_of(label, list(offered), "tokens-beside", named=offered.__getitem__)
    tokens, size = look.trace.tokens, look.model.tokenizer.size
    if chosen == OWN_BERT and others is not None:
        tokens, size = others.tokens(text), others.size
    full, other = pieces(gpt2_tokens(text)), pieces(tokens)
    subset: list[Part] = []
    if chosen == "own" and isinstance(look.model.tokenizer, GPT2Subset):
        words = (
            f"{plain(look.title)} keeps {size:,} of GPT-2's tokens and renumbers them. Any other "
            "token is spelled out in bytes: type a rare word to see this."
        )
        subset.append(Caption(words))
    return Panel(
        "tokens-two",
        below=[
            Columns(
                [
                    _side(GPT2_NAME, gpt2().n_vocab, full, text, "tokens-gpt2"),
                    _side(offered[chosen], size, other, text, "tokens-other"),
                ]
            ),
            partial(
                look_for,
                "Each tokenizer has its own list of pieces, so the same text gets different ids and often "
                "different tokens. Rare words are usually split into more pieces than common ones.",
            ),
            *subset,
        ],
    )


def _side(name: str, vocabulary: int, cut: Sequence[Piece], text: str, key: str) -> Panel:
    typed = sum(not piece.token.special for piece in cut)
    share = f", {len(text) / typed:.2f} characters each on average" if typed else ""
    words = (
        f"{counted(typed, 'token')} for {counted(len(text), 'character')}{share}. "
        f"The vocabulary has {vocabulary:,} tokens."
    )
    return Panel(
        key,
        below=[f"**{plain(name)}**", partial(strip, cut, key, name), Caption(words)],
        table=_table(cut),
    )


def strip(cut: Sequence[Piece], key: str, name: str) -> None:
    """Draws the tokens; many of them scroll."""
    with st.container(key=key, height=340 if len(cut) > MANY else "content", border=False):
        st.html(token_strip(cut, name))


def _surprise(look: Look, cut: Sequence[Piece]) -> str:
    if any(piece.part_of for piece in cut):
        return (
            "The framed boxes hold only part of a character. Together with their neighbours they "
            "make a whole one; alone they have no text, so their bytes are shown."
        )
    unknown = look.model.new_words(look.request.text)
    if unknown and any(piece.token.text == UNKNOWN for piece in cut):
        return (
            f"{UNKNOWN} stands for anything that this vocabulary cannot write. The model cannot "
            "tell what it was."
        )
    if any(piece.token.text.startswith("##") for piece in cut):
        return "A piece that begins with ## continues the word before it."
    if isinstance(look.model.tokenizer, GPT2Subset):
        return (
            "The space before a word, drawn as a dot, belongs to its token. So a word at the start "
            "of the text is a different token, with a different id, from the same word later."
        )
    return "Each box is one token: what the model reads as one unit. The number is its id."


def _table(cut: Sequence[Piece]) -> Table:
    return Table(
        {
            "token": [token_label(piece.spelled) for piece in cut],
            "id": [str(piece.token.id) for piece in cut],
            "bytes": [piece.hexadecimal or "—" for piece in cut],
            "part of": [token_label(piece.part_of) if piece.part_of else "" for piece in cut],
            "added": ["yes" if piece.token.special else "" for piece in cut],
        },
        index="position",
    )


def token_strip(pieces: Sequence[Piece], name: str) -> str:
    """One box for each token, in order. Torn characters are framed, added tokens dashed. name: what a
    screen reader calls the row."""
    boxes = "".join(_box(piece, number) for number, piece in enumerate(pieces))
    return f'<ol style="{_ROW}" aria-label="{html.escape(name)}">{boxes}</ol>'


def _box(piece: Piece, number: int) -> str:
    lines = [
        f'<span style="font-size:15px">{html.escape(token_label(piece.spelled))}</span>',
        f'<span style="{_SMALL}">{piece.token.id}</span>',
    ]
    if piece.hexadecimal:
        lines.append(f'<span style="{_SMALL};font-size:13px">{piece.hexadecimal}</span>')
    if piece.part_of:
        part = html.escape(token_label(piece.part_of))
        lines.append(f'<span style="{_SMALL}">part of {part}</span>')
    if piece.token.special:
        paint = f"border:1px dashed {MASKED}"
    elif piece.part_of:
        paint = f"border:1px solid {KEY};background:{rgba(KEY, 0.12)}"
    else:
        paint = f"border:1px solid transparent;background:{_TINTS[number % 2]}"
    return f'<li style="{_BOX};{paint}">{"".join(lines)}</li>'


# One word, step by step: byte pairs merged by rank, or the longest piece first.

_STEPS = "display:flex;flex-direction:column;gap:5px;padding:0;margin:0;list-style:none"
_STEP = "display:flex;flex-wrap:wrap;gap:3px;align-items:center;margin:0;padding:0"
_PIECE = (
    "padding:1px 6px;border-radius:4px;font-family:monospace;overflow-wrap:anywhere;max-width:100%"
)
_BESIDE = "font-size:13px;opacity:0.8;margin-left:6px"


def word_steps(look: Look) -> Panel:
    """The steps for a chosen word of the sentence."""
    tokenizer, text = look.model.tokenizer, look.request.text
    own = bool(words_of(tokenizer, text))
    if not own:
        tokenizer = whole_gpt2()
    words = words_of(tokenizer, text)
    if not words:
        raise NotShownError("There is no text here, so there is no word to cut.")
    fitting = [len(word.encode()) * (len(word.encode()) <= LONGEST) for word in words]
    first = fitting.index(max(fitting))
    number = one_listed("Word", numbered_labels(words), "word-steps", first=first)
    with refusals():
        cut = word_cut(tokenizer, text, number)
    whose: list[Part] = []
    if not own:
        whose.append(plain(f"{look.title} {_other(look)} This is GPT-2's tokenizer."))
    elif isinstance(tokenizer, GPT2Subset):
        whose.append(_kept(look.title, tokenizer, cut))
    if cut.agrees:
        check = "Check: the last row is what the tokenizer itself makes of this word."
        whose.append(Caption(check))
    else:
        result = " ".join(token_label(_text(piece)) for piece in cut.own)
        rules = f"The tokenizer itself makes {result} of this word: it has rules that are not shown here."
        whose.append(partial(st.warning, plain(rules)))
    return Panel(
        "word-steps",
        look_for=_merges(cut) if cut.kind == "merges" else _longest(cut),
        picture=partial(st.html, _rows(cut.steps)),
        beside=whose,
    )


def _rows(steps: Sequence[CutStep]) -> str:
    rows = []
    for step in steps:
        boxes = []
        for at, piece in enumerate(step.pieces):
            frame, colour = (KEY, KEY) if at == step.at else ("transparent", STREAM)
            paint = f"border:1px solid {frame};background:{rgba(colour, 0.14)}"
            text = html.escape(token_label(_text(piece)))
            boxes.append(f'<span style="{_PIECE};{paint}">{text}</span>')
        note = step.note if step.rank is None else f"rank {step.rank:,}"
        boxes.append(f'<span style="{_BESIDE}">{note}</span>')
        rows.append(f'<li style="{_STEP}">{"".join(boxes)}</li>')
    return f'<ol style="{_STEPS}" aria-label="Steps">{"".join(rows)}</ol>'


def _text(piece: bytes | str) -> str:
    return spelled(piece) if isinstance(piece, bytes) else piece


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


def _other(look: Look) -> str:
    """How a tokenizer cuts words whose steps are not shown."""
    tokenizer = look.model.tokenizer
    if isinstance(tokenizer, WordTokenizer):
        return "looks up whole words and cuts none."
    if isinstance(tokenizer, HubTokenizer) and tokenizer.is_unigram:
        return (
            "has a unigram tokenizer: of all ways to cut a word into pieces of its list it takes the most "
            "probable one, without merges, so there are no steps to show."
        )
    return "cuts words in a way whose steps are not shown here."


def _kept(name: str, tokenizer: GPT2Subset, cut: WordCut) -> str:
    words = (
        f"{plain(name)} keeps {len(tokenizer.kept):,} of GPT-2's {gpt2().n_vocab:,} tokens. GPT-2 merges "
        "with all of them"
    )
    if cut.steps[-1].note != SPELLED:
        return f"{words}; this word's tokens are among those that are kept."
    return (
        f"{words}, and what this model has not kept it then spells in single bytes: the last row."
    )
