"""Which sizes are counted: this sentence in its model, a known model, or the reader's own."""

import re
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from model.analysis.cost.operations import Lengths, lengths_of
from model.nn.config import TransformerConfig
from model.worked.heads import LONG_WALK, SHORT_WALK
from model.worked.notes import INTRODUCTION, NotesPlace
from viz.notation.words import sentences_of
from viz.state import url
from viz.state.look import Look

say = sentences_of("cost.choice")

SizeNumbers = tuple[int, ...]  # in the order of FIELDS
_STATE, _PARAMETER, _LENGTH = "cost-sizes", "cost-numbers", "cost-length"
SENTENCE = "This sentence"
GPT2_CONFIG = TransformerConfig("decoder", 50_257, 1_024, 768, 12, decoder_layers=12,
                                d_mlp=3_072, activation="gelu_tanh")  # fmt: skip
PAPER_CONFIG = TransformerConfig("encoder-decoder", 37_000, 512, 512, 8, encoder_layers=6,
                                 decoder_layers=6, d_mlp=2_048, norm_place="post",
                                 activation="relu", positions="sinusoidal",
                                 qkv_bias=False, output_bias=False)  # fmt: skip


@dataclass(frozen=True)
class ChosenSizes:
    """A transformer and what it reads."""

    config: TransformerConfig
    lengths: Lengths
    note: str = ""

    @property
    def numbers(self) -> SizeNumbers:
        """In the order of FIELDS."""
        config, lengths = self.config, self.lengths
        layers = config.decoder_layers or config.encoder_layers
        of_text, width = (lengths.batch, lengths.tokens), config.d_model
        return (*of_text, width, config.heads, layers, config.d_vocab)


def _walk(lengths: Lengths, source: NotesPlace) -> ChosenSizes:
    """A walkthrough of the notes. source: where they give its sizes."""
    return ChosenSizes(
        TransformerConfig("decoder", 10_000, 512, 512, 8, decoder_layers=1, d_mlp=2_048),
        lengths,
        say("gives_batch_length", source=source, final_layer=INTRODUCTION.at("Final layer")),
    )


PRESETS: dict[str, ChosenSizes] = {
    "GPT-2 small": ChosenSizes(GPT2_CONFIG, Lengths(1, 1_024), say("smallest_model_radford")),
    say("base_model_2017"): ChosenSizes(
        PAPER_CONFIG,
        Lengths(1, 64),
        say("vaswani_et_al_2017"),
    ),
    "A walkthrough: batch 32, length 16": _walk(Lengths(32, 16), LONG_WALK),
    "A walkthrough: batch 2, length 4": _walk(Lengths(2, 4), SHORT_WALK),
}


FIELDS = {  # the label of each number, and the most that it may be
    "Batch": 4_096,
    "Length": 1_000_000,
    "Width": 65_536,
    "Heads": 512,
    "Layers": 1_000,
    "Vocabulary": 10_000_000,
}


def resized(sizes: ChosenSizes, length: int) -> ChosenSizes:
    """The same sizes for a text of another length."""
    batch, _, *others = sizes.numbers
    return _sizes(sizes, (batch, length, *others))


def _sizes(preset: ChosenSizes, numbers: SizeNumbers) -> ChosenSizes:
    """The preset with these numbers. The feed-forward stays as many times as wide as the model, and the
    target as many times as long as the text; stacks of unequal depth stay so until it is changed."""
    batch, length, width, heads, layers, vocabulary = numbers
    config = preset.config
    same = layers == preset.numbers[4]
    target = round(preset.lengths.target * length / preset.lengths.tokens)
    return ChosenSizes(
        replace(
            config,
            d_model=width,
            heads=heads,
            d_vocab=vocabulary,
            encoder_layers=config.encoder_layers if same else layers * bool(config.encoder_layers),
            decoder_layers=config.decoder_layers if same else layers * bool(config.decoder_layers),
            d_mlp=config.d_mlp * width // config.d_model,
            d_expert=config.d_expert * width // config.d_model,
            d_shared=config.d_shared * width // config.d_model,
            n_ctx=max(config.n_ctx, length),
        ),
        Lengths(batch, length, max(target, 1) if preset.lengths.target else 0),
    )


LENGTHS = tuple(2**power for power in range(17))


def choose_sizes(look: Look) -> tuple[ChosenSizes, bool]:
    """The sizes that are counted, and whether they are exactly those of the run on the page. A known model, a
    slider for the length, and a box for each other number. Changed numbers are kept, in the link too, until
    the preset changes. Raises ValueError for sizes that fit no transformer."""
    name: str = st.selectbox(
        "Sizes of",
        (SENTENCE, *PRESETS),
        key="cost-preset",
        bind="query-params",
        persist_state="session",
    )
    note = say("sentence_reads", look=look.title)
    own = ChosenSizes(look.model.config, lengths_of(look.trace), note)
    preset = own if name == SENTENCE else PRESETS[name]
    given = preset.numbers
    basis = (name, preset.config, preset.lengths)
    state = st.session_state
    opened, numbers = state.get(_STATE, (None, ()))
    if opened != basis:
        numbers = _linked(given) if opened is None else given
    keys = [f"cost-{label.lower()}" for label in FIELDS]
    for key, number in zip(keys, numbers, strict=True):
        is_new = opened != basis or key not in state  # it was away
        # Set in every run: a box in a closed popover hears of its number only when it is opened.
        state[key] = (number if key == _LENGTH else f"{number}") if is_new else state[key]
    lengths = sorted({*LENGTHS, given[1], state[_LENGTH]})
    length = st.select_slider("Length n", lengths, format_func="{:,}".format, key=_LENGTH)
    with st.popover("Other sizes"):
        boxes = st.columns(2, gap="small") * len(FIELDS)
        written = [
            str(length) if key == _LENGTH else box.text_input(label, key=key)
            for label, key, box in zip(FIELDS, keys, boxes, strict=False)
        ]
        forget = partial(state.__setitem__, _STATE, ("forgotten", ()))
        st.button("Reset these sizes", key="cost-back", on_click=forget)
    numbers = tuple(map(_whole, written, FIELDS, FIELDS.values()))
    state[_STATE] = (basis, numbers)
    if numbers == given:
        url.say({}, {_PARAMETER})
        return preset, preset == own
    url.say({_PARAMETER: "-".join(map(str, numbers))}, {_PARAMETER})
    return replace(_sizes(preset, numbers), note=say("sizes_differ", name=name)), False


def _whole(written: str, label: str, most: int) -> int:
    digits = written.replace(",", "").strip()
    if not re.fullmatch("[0-9]{1,8}", digits) or not 1 <= int(digits) <= most:
        raise ValueError(f"{label} is a whole number from 1 to {most:,}.")
    return int(digits)


def _linked(given: SizeNumbers) -> SizeNumbers:
    """The numbers of the link; those given where it has none that can be read."""
    written = url.read({_PARAMETER}).get(_PARAMETER, "").split("-")
    if len(written) != len(FIELDS) or not all(re.fullmatch("[0-9]{1,8}", part) for part in written):
        return given
    numbers = tuple(map(int, written))
    fits = all(1 <= n <= most for n, most in zip(numbers, FIELDS.values(), strict=True))
    return numbers if fits else given
