"""Which sizes are counted: this sentence in its model, a known model, or the reader's own."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps

import streamlit as st

from model.analysis.cost.operations import Lengths, lengths_of
from model.nn.config import TransformerConfig
from model.worked.heads import LONG_WALK, SHORT_WALK
from model.worked.notes import INTRODUCTION
from viz.notation.markdown import plain
from viz.shell.panel import Caption, Panel, PanelView, refusals
from viz.state import url
from viz.state.look import Look

SizeNumbers = tuple[int, ...]  # in the order of FIELDS
_STATE, _PARAMETER = "cost-sizes", "cost-numbers"
SENTENCE = "This sentence"
GPT2_CONFIG = TransformerConfig("decoder", 50_257, 1_024, 768, 12, decoder_layers=12,
                                d_mlp=3_072, activation="gelu_tanh")  # fmt: skip
PAPER_CONFIG = TransformerConfig("encoder-decoder", 37_000, 512, 512, 8, encoder_layers=6,
                                 decoder_layers=6, d_mlp=2_048, norm_place="post",
                                 activation="relu", positions="sinusoidal",
                                 qkv_bias=False, output_bias=False)  # fmt: skip
_WALK = TransformerConfig("decoder", 10_000, 512, 512, 8, decoder_layers=1, d_mlp=2_048)
_WALK_NOTE = (
    "{} gives batch, length, width and heads of one attention layer. The vocabulary of 10,000 is "
    f"that of {INTRODUCTION.at('Final layer')}; the feed-forward layer is four times as wide as "
    "the model."
)


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


PRESETS: dict[str, ChosenSizes] = {
    "GPT-2 small": ChosenSizes(
        GPT2_CONFIG, Lengths(1, 1_024), "The smallest model of Radford et al. 2019."
    ),
    "The base model of the 2017 paper": ChosenSizes(
        PAPER_CONFIG,
        Lengths(1, 64),
        "Vaswani et al. 2017: six layers in each stack, one shared vocabulary of about 37,000.",
    ),
    "A walkthrough: batch 32, length 16": ChosenSizes(
        _WALK, Lengths(32, 16), _WALK_NOTE.format(LONG_WALK)
    ),
    "A walkthrough: batch 2, length 4": ChosenSizes(
        _WALK, Lengths(2, 4), _WALK_NOTE.format(SHORT_WALK)
    ),
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


def with_sizes(view: Callable[[Look, ChosenSizes, bool], Panel]) -> PanelView:
    """The view with the controls of the sizes before its own, and what they are beside its picture.

    view: gets the sizes, and whether they are exactly those of the run on the page.
    """

    @wraps(view)
    def drawn(look: Look) -> Panel:
        with refusals(), st.popover("Sizes"):
            sizes, own = _choose_sizes(look)
        panel = view(look, sizes, own)
        listed = ", ".join(
            f"{label.lower()} {number:,}"
            for label, number in zip(FIELDS, sizes.numbers, strict=True)
        )
        note = Caption(plain(f"{sizes.note} Sizes: {listed}."))
        return replace(panel, beside=[*panel.beside, note])

    return drawn


def _choose_sizes(look: Look) -> tuple[ChosenSizes, bool]:
    """A known model, and one control for each number. Changed numbers are kept, in the link too, until the
    preset changes; then the controls get those of the new one. Raises ValueError for sizes that fit no
    transformer."""
    name: str = st.selectbox(
        "Sizes of",
        (SENTENCE, *PRESETS),
        key="cost-preset",
        bind="query-params",
        persist_state="session",
    )
    note = f"Your sentence as {look.title} reads it."
    own = ChosenSizes(look.model.config, lengths_of(look.trace), note)
    preset = own if name == SENTENCE else PRESETS[name]
    given = preset.numbers
    basis = (name, preset.config, preset.lengths)
    opened, numbers = st.session_state.get(_STATE, (None, ()))
    if opened != basis:
        numbers = _linked(given) if opened is None else given
    boxes, chosen = st.columns(2, gap="small") * (len(FIELDS) // 2), list[int]()
    for (label, most), number, box in zip(FIELDS.items(), numbers, boxes, strict=True):
        key = f"cost-{label.lower()}"
        if opened != basis or key not in st.session_state:  # it was away
            st.session_state[key] = number
        chosen.append(int(box.number_input(label, 1, most, step=1, key=key)))
    numbers = tuple(chosen)
    st.session_state[_STATE] = (basis, numbers)
    if numbers == given:
        url.say({}, {_PARAMETER})
        return preset, preset == own
    url.say({_PARAMETER: "-".join(map(str, numbers))}, {_PARAMETER})
    forget = partial(st.session_state.__setitem__, _STATE, ("forgotten", ()))
    st.button("Reset these sizes", key="cost-back", on_click=forget)
    return replace(_sizes(preset, numbers), note=f"These sizes differ from: {name}."), False


def _linked(given: SizeNumbers) -> SizeNumbers:
    """The numbers of the link; those given where it has none that can be read."""
    written = url.read({_PARAMETER}).get(_PARAMETER, "").split("-")
    if len(written) != len(FIELDS) or not all(re.fullmatch("[0-9]{1,8}", part) for part in written):
        return given
    numbers = tuple(map(int, written))
    fits = all(1 <= n <= most for n, most in zip(numbers, FIELDS.values(), strict=True))
    return numbers if fits else given
