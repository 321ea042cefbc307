"""The tokens of the sentence as chips with their ids, the same text cut by another tokenizer, and one word
cut step by step."""

import html
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.hub.tokenizer import HubTokenizer
from model.loading.bert import word_pieces
from model.loading.registry import OWN_BERT, models
from model.run.tokenizers import (
    GPT2Subset,
    Piece,
    Tokenizer,
    WordTokenizer,
    gpt2,
    gpt2_tokens,
    pieces,
    spelled,
)
from model.run.word_cuts import (
    CONTINUES,
    LONGEST,
    SPELLED,
    CutStep,
    WordCut,
    word_cut,
    words_of,
)
from viz.elements.one_of import one_listed
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import counted
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Check, Panel, Part, Table
from viz.state.look import Look

say = sentences_of("tokens.listing")

UNKNOWN = "[UNK]"  # of word pieces
GPT2_NAME = say("gpt_2_whole_vocabulary")
FEW, SEVERAL, MANY = 24, 60, 90  # tokens: more are smaller, and many scroll
STYLE = f"<style>{Path(__file__).with_name('tokens.css').read_text(encoding='utf-8')}</style>"


def token_list(look: Look) -> Panel:
    """The tokens that the model reads."""
    own, text = pieces(look.trace.tokens), look.request.text
    listed = words_of(look.model.tokenizer, text)
    word = _choose_word(listed) if listed else None
    chosen = _places_of_word(look, own, listed, word)
    words, named = _surprise(look, own)
    notes: list[Part] = []
    if any(piece.token.special for piece in own):
        notes.append(Caption(say("dashed_tokens_tokenizer")))
    if separator := look.model.config.separator:
        (between,) = look.model.tokenizer.named([separator])
        hint = say("write_between_sentences", between=between.text)
        notes.append(Caption(plain(hint)))
    counts = _counts(text, own) | {say("tokens_vocabulary"): f"{look.model.tokenizer.size:,}"}
    return Panel(
        "tokens-own",
        look_for=words,
        picture=partial(_draw, own, named, counts, chosen),
        below=[*notes, _word_steps(look, word)],
        table=_table({look.title: own}),
    )


def _counts(text: str, cut: Sequence[Piece]) -> dict[str, str]:
    """How long a text is in characters and in tokens, what the tokenizer adds not counted."""
    typed = sum(not piece.token.special for piece in cut)
    counts = {"characters": f"{len(text):,}", "tokens": f"{typed:,}"}
    if typed:
        counts["characters a token"] = f"{len(text) / typed:.2f}"
    return counts


def two_tokenizers(look: Look) -> Panel:
    """The same text cut by the model's own tokenizer, and below it by another one."""
    text, tokenizer = look.request.text, look.model.tokenizer
    others = {GPT2_NAME: (pieces(gpt2_tokens(text)), gpt2().n_vocab)}
    if look.model.name != OWN_BERT and (words := word_pieces()) is not None:
        title = models[OWN_BERT].title.partition(" (")[0]
        named = f"{title}, word pieces"
        of_words = {named: (pieces(words.tokens(text)), words.size)}
        # GPT-2 cuts a text as its subset does, or nearly so.
        others = of_words | others if isinstance(tokenizer, GPT2Subset) else others | of_words
    names, own = list(others), pieces(look.trace.tokens)
    name = names[one_listed("Beside it", names, f"tokens-beside-{len(names)}")]
    other, size = others[name]
    rows = [(look.title, own, tokenizer.size), (name, other, size)]
    kept = ""
    if name == GPT2_NAME and isinstance(tokenizer, GPT2Subset):
        kept = say("keeps_gpt_2_tokens", look=look.title, tokenizer=tokenizer.size)
    return Panel(
        "tokens-two",
        look_for=_apart(own, other) + kept,
        picture=partial(_one_below_the_other, text, rows),
        table=_table({title: cut for title, cut, _ in rows}),
    )


def _one_below_the_other(text: str, rows: Sequence[tuple[str, Sequence[Piece], int]]) -> None:
    """rows: a tokenizer's name, its tokens of the text, and how many it has in all."""
    for number, (title, cut, size) in enumerate(rows):
        counts = _counts(text, cut) | {"in the vocabulary": f"{size:,}"}
        words = ", ".join(f"{count} {what}" for what, count in counts.items())
        st.markdown(f"**{plain(title)}**: {words}")
        with _room(f"tokens-two-{number}", cut):
            st.html(token_strip(cut, title, size="several"))


def _apart(own: Sequence[Piece], other: Sequence[Piece]) -> str:
    """How two lists of tokens of one text differ."""
    typed = [sum(not piece.token.special for piece in cut) for cut in (own, other)]
    words = f"{counted(typed[0], 'token')} above, {typed[1]:,} below."
    if typed[0] == typed[1]:
        words = f"Both make {counted(typed[0], 'token')}."
    below = {piece.spelled.strip().lower(): piece for piece in other if not piece.token.special}
    shared = [piece for piece in own if piece.spelled.strip().lower() in below]
    if not shared:
        return say("token_both_lists", words=words)
    longest = max(shared, key=lambda piece: len(piece.spelled.strip()))
    same = below[longest.spelled.strip().lower()]
    return say(
        "numbers_own_list",
        words=words,
        spelled=longest.spelled,
        id=longest.token.id,
        same_spelled=same.spelled,
        token_id=same.token.id,
    )


def _surprise(look: Look, cut: Sequence[Piece]) -> tuple[str, Collection[int]]:
    """What is worth a look in these tokens, and the places of those that show it."""

    def where(shows: Callable[[Piece], bool]) -> list[int]:
        return [place for place, piece in enumerate(cut) if shows(piece)]

    if torn := where(lambda piece: bool(piece.part_of)):
        return (
            say("framed_tokens_hold"),
            torn,
        )
    unknown = where(lambda piece: piece.token.text == UNKNOWN)
    if unknown and look.model.new_words(look.request.text):
        return (
            say("stands_anything_vocabulary", unknown=UNKNOWN),
            unknown,
        )
    if continued := where(lambda piece: piece.token.text.startswith(CONTINUES)):
        return say("piece_begins_continues", continues=CONTINUES), continued
    for place, piece in enumerate(cut):
        for other in range(place):
            one = cut[other]
            if one.spelled != piece.spelled and one.spelled.strip() == piece.spelled.strip():
                return (
                    say(
                        "tokens_ids_space",
                        spelled=one.spelled,
                        piece_spelled=piece.spelled,
                        id=one.token.id,
                        token_id=piece.token.id,
                    ),
                    (other, place),
                )
    (id_, times), *_ = Counter(
        piece.token.id for piece in cut if not piece.token.special
    ).most_common(1) or [(0, 0)]
    if times > 1:
        again = where(lambda piece: piece.token.id == id_)
        return (
            say("stands_times_time", spelled=cut[again[0]].spelled, times=times, id=id_),
            again,
        )
    if isinstance(look.model.tokenizer, GPT2Subset):
        return (
            say("space_before_word"),
            (),
        )
    return say("chip_token_model"), ()


def _room(key: str, cut: Sequence[Piece]) -> DeltaGenerator:
    """The place of the chips: many of them scroll."""
    return st.container(key=key, height=340 if len(cut) > MANY else "content", border=False)


def _draw(
    cut: Sequence[Piece],
    named: Collection[int],
    counts: Mapping[str, str],
    chosen: Collection[int],
) -> None:
    with _room("tokens-own", cut):
        under = "".join(f"<span><b>{count}</b>{what}</span>" for what, count in counts.items())
        st.html(token_strip(cut, say("tokens_sentence"), named, chosen=chosen, under=under))


def token_strip(
    cut: Sequence[Piece],
    name: str,
    named: Collection[int] = (),
    *,
    chosen: Collection[int] = (),
    size: str = "",
    under: str = "",
) -> str:
    """One chip for each token, in order; added tokens are dashed.

    Args:
        cut: the tokens.
        name: what a screen reader calls the row.
        named: the places of those that are framed.
        chosen: the places of those that are drawn dark.
        size: "few", "several" or "many"; empty: as many as they are.
        under: HTML below them.
    """
    number = "few" if len(cut) <= FEW else "several" if len(cut) <= SEVERAL else "many"
    chips = "".join(
        f'<li class="{_look(piece, place, named, chosen)}" title="{piece.hexadecimal}">'
        f"<b>{html.escape(token_label(piece.spelled))}</b><span>{piece.token.id}</span>"
        + (
            f"<span>part of {html.escape(token_label(piece.part_of))}</span>"
            if piece.part_of
            else ""
        )
        + "</li>"
        for place, piece in enumerate(cut)
    )
    below = f'<p class="counts">{under}</p>' if under else ""
    return (
        f'{STYLE}<div class="tokens {size or number}"><ol aria-label="{html.escape(name)}">{chips}</ol>'
        f"{below}</div>"
    )


def _look(piece: Piece, place: int, named: Collection[int], chosen: Collection[int]) -> str:
    """The classes of a chip in tokens.css."""
    looks = {"added": piece.token.special, "named": place in named, "chosen": place in chosen}
    return " ".join(name for name, holds in looks.items() if holds)


def _table(cuts: Mapping[str, Sequence[Piece]]) -> Table:
    """The tokens of each tokenizer, by its name."""
    every = [(name, place, piece) for name, cut in cuts.items() for place, piece in enumerate(cut)]
    named = {"tokenizer": [name for name, *_ in every]} if len(cuts) > 1 else {}
    return Table(
        named
        | {
            "position": [str(place) for _, place, _ in every],
            "token": [token_label(piece.spelled) for *_, piece in every],
            "id": [str(piece.token.id) for *_, piece in every],
            "bytes": [piece.hexadecimal or "—" for *_, piece in every],
            "part of": [token_label(piece.part_of) if piece.part_of else "" for *_, piece in every],
            "added": ["yes" if piece.token.special else "" for *_, piece in every],
        }
    )


# One word, step by step: byte pairs merged by rank, or the longest piece first.


def _choose_word(words: Sequence[str]) -> int:
    """The number of the chosen word; at first of the longest one whose steps are shown."""
    fitting = [len(word.encode()) * (len(word.encode()) <= LONGEST) for word in words]
    first = fitting.index(max(fitting))
    return one_listed("Word", numbered_labels(words), "word-steps", first=first)


def _places_of_word(
    look: Look, own: Sequence[Piece], words: Sequence[str], number: int | None
) -> range:
    """Where the tokens of a word stand in the sentence; empty where they are not found in their order."""
    if number is None:
        return range(0)
    cuts = _lengths(look.model.tokenizer, look.request.text, len(words))
    typed = [place for place, piece in enumerate(own) if not piece.token.special]
    if not cuts or sum(cuts) != len(typed):
        return range(0)
    start = typed[sum(cuts[:number])]
    return range(start, start + cuts[number])


@lru_cache(maxsize=32)
def _lengths(tokenizer: Tokenizer, text: str, words: int) -> tuple[int, ...]:
    """How many tokens each word of a text becomes; none where a word alone cannot be cut."""
    try:
        return tuple(len(word_cut(tokenizer, text, at).own) for at in range(words))
    except ValueError:
        return ()


def _word_steps(look: Look, number: int | None) -> Part:
    """The steps for the chosen word of the sentence."""
    tokenizer, text = look.model.tokenizer, look.request.text
    if number is None:
        return Caption(plain(f"{look.title} {_other(look)}"))
    words = words_of(tokenizer, text)
    try:
        cut = word_cut(tokenizer, text, number)
    except ValueError as refusal:
        return Caption(plain(str(refusal)))
    word = bold_token(words[number])
    if len(cut.steps[0].pieces) == len(cut.own) == 1:
        return say("not_cut_token", word=word)
    steps = _merges(cut) if cut.kind == "merges" else _longest(cut)
    whose: list[Part] = [f"**How {word} is cut.** {steps}"]
    if isinstance(tokenizer, GPT2Subset):
        whose.append(Caption(_kept(look.title, tokenizer, cut)))
    if not cut.agrees:
        result = " ".join(token_label(_text(piece)) for piece in cut.own)
        rules = say("tokenizer_itself_makes", result=result)
        whose.append(plain(rules))
    words_of_check = say("check_last_row_tokenizer")
    return Panel(
        "word-steps",
        picture=partial(st.html, _rows(cut.steps)),
        beside=whose,
        check=Check(words_of_check, say("tokenizer_own_tokens")) if cut.agrees else None,
    )


def _rows(steps: Sequence[CutStep]) -> str:
    """A row for each step, each piece as wide as what it was made of."""
    rows = []
    for step in steps:
        made = "".join(
            f'<b class="{"made" if at == step.at else ""}" style="grid-column:span {_units(piece)}">'
            f"{html.escape(token_label(_text(piece)))}</b>"
            for at, piece in enumerate(step.pieces)
        )
        note = step.note if step.rank is None else f"rank {step.rank:,}"
        rows.append(f"<li><div>{made}</div><span>{note}</span></li>")
    units = max(sum(map(_units, step.pieces)) for step in steps)
    steps_of = f'<ol aria-label="Steps">{"".join(rows)}</ol>'
    return f'{STYLE}<div class="steps" style="--units:{units}">{steps_of}</div>'


def _units(piece: bytes | str) -> int:
    """How many bytes or letters of the word a piece holds."""
    return len(piece if isinstance(piece, bytes) else piece.removeprefix(CONTINUES)) or 1


def _text(piece: bytes | str) -> str:
    return spelled(piece) if isinstance(piece, bytes) else piece


def _merges(cut: WordCut) -> str:
    start = f"{counted(len(cut.steps[0].pieces), 'byte')} to begin with."
    merges = [place for place, step in enumerate(cut.steps) if step.rank is not None]
    if not merges:
        return say("neighbours_pair_list", start=start)
    before, first = cut.steps[merges[0] - 1].pieces, cut.steps[merges[0]]
    at = first.at or 0
    left, right = (bold_token(_text(piece)) for piece in before[at : at + 2])
    return say(
        "step_pair_neighbours",
        start=start,
        left=left,
        right=right,
        rank=first.rank,
        merges=len(merges),
    )


def _longest(cut: WordCut) -> str:
    return say("left_word_longest", own=len(cut.own))


def _other(look: Look) -> str:
    """How a tokenizer cuts words whose steps are not shown."""
    tokenizer = look.model.tokenizer
    if isinstance(tokenizer, WordTokenizer):
        return say("looks_up_whole_words")
    if isinstance(tokenizer, HubTokenizer) and tokenizer.is_unigram:
        return say("unigram_tokenizer_ways")
    return say("cuts_words_way_whose")


def _kept(name: str, tokenizer: GPT2Subset, cut: WordCut) -> str:
    words = say(
        "keeps_gpt_2_tokens_gpt", name=name, kept=len(tokenizer.kept), n_vocab=gpt2().n_vocab
    )
    if cut.steps[-1].note != SPELLED:
        return say("word_tokens_among", words=words)
    return say("model_not_kept_spells", words=words)
