"""An encoder layer, a decoder layer with cross-attention, and training on all positions at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.arithmetic import activations, attention, normalization, sizes
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Array, Input, Step, Values, given, numbered, whole, worked
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION

_DIMENSIONS = numbered("dim", 4)
_HIDDEN = numbered("hidden", 8)
_SOURCE = ("source 0", "source 1", "source 2")
_TARGET = ("target 0", "target 1")
Labels = tuple[str, ...]


def _add_and_norm(stream: Array, update: Array, tokens: Labels, title: str) -> Step:
    result = normalization.layer_norm(stream + update)
    return Step(
        title,
        r"\mathrm{LN}(x + f(x))",
        result,
        rf"\mathrm{{LN}}({latex.row((stream + update)[0])}) = {latex.row(result[0])}",
        tokens,
        _DIMENSIONS,
        "output",
        comment="The sub-layer's output is added to its input; then each row is normalized.",
    )


def _feed_forward(stream: Array, values: Values, tokens: Labels) -> Step:
    result = activations.feed_forward(stream, values["first"], values["second"])
    return Step(
        "Feed-forward",
        r"\mathrm{ReLU}(x\, W_1)\, W_2",
        result,
        rf"\text{{{tokens[0]}: }} {latex.row(result[0])}",
        tokens,
        _DIMENSIONS,
    )


def _weights_inputs() -> tuple[Input, ...]:
    generator = np.random.default_rng(12)
    first = generator.uniform(-1, 1, (4, 8)).round(1)
    second = generator.uniform(-1, 1, (8, 4)).round(1)
    return (
        given("first", "W_1 (chosen here)", first, _DIMENSIONS, _HIDDEN),
        given("second", "W_2 (chosen here)", second, _HIDDEN, _DIMENSIONS),
    )


_STREAM = [[0.8, -0.2, 0.5, 0.1], [-0.3, 0.9, 0.2, 0.6], [0.4, 0.3, -0.7, 1]]


@worked(
    "encoder-layer",
    "§12",
    "One encoder layer, with W = I",
    "Self-attention, add and norm, feed-forward, add and norm.",
    given("source", "Source vectors (chosen here)", _STREAM, _SOURCE, _DIMENSIONS),
    *_weights_inputs(),
)
def _encoder_layer(values: Values) -> tuple[Step, ...]:
    x = values["source"]
    run = attention.attend(x, x, x)
    first = _add_and_norm(x, run.output, _SOURCE, "Add and norm")
    hidden = _feed_forward(first.result, values, _SOURCE)
    return (
        steps.score(x, x, _SOURCE, _SOURCE),
        replace(
            steps.weigh(run.scaled, _SOURCE, _SOURCE),
            title="Self-attention weights",
            comment="No mask: every source token may look at every other.",
        ),
        replace(steps.sum_up(run.weights, x, _SOURCE), title="Self-attention output"),
        first,
        hidden,
        _add_and_norm(first.result, hidden.result, _SOURCE, "Add and norm again"),
    )


@worked(
    "decoder-layer",
    "§12",
    "One decoder layer, with W = I",
    "Masked self-attention, cross-attention, feed-forward, each with add and norm. "
    "As in English to French: the target reads the source.",
    given(
        "target",
        "Target vectors (chosen here)",
        [[0.2, 0.7, -0.4, 0.5], [0.9, -0.1, 0.3, -0.6]],
        _TARGET,
        _DIMENSIONS,
    ),
    given("source", "Encoder output (chosen here)", _STREAM, _SOURCE, _DIMENSIONS),
    *_weights_inputs(),
)
def _decoder_layer(values: Values) -> tuple[Step, ...]:
    target, source = values["target"], values["source"]
    allowed = attention.causal_mask(len(target))
    own = attention.attend(target, target, target, allowed=allowed)
    hidden = attention.masked(own.scaled, allowed)
    first = _add_and_norm(target, own.output, _TARGET, "Add and norm")
    cross = attention.attend(first.result, source, source)
    second = _add_and_norm(
        first.result, cross.output, _TARGET, "Add and norm after cross-attention"
    )
    forward = _feed_forward(second.result, values, _TARGET)
    return (
        replace(
            steps.weigh(hidden, _TARGET, _TARGET, row=1, allowed=allowed),
            title="1. Masked self-attention: weights",
            comment="Queries, keys and values all come from the decoder.",
        ),
        replace(
            steps.sum_up(own.weights, target, _TARGET, row=1),
            title="Masked self-attention: output",
        ),
        first,
        replace(
            steps.score(first.result, source, _TARGET, _SOURCE),
            title="2. Cross-attention: scores",
            formula=r"S = Q_{\text{decoder}}\, K_{\text{encoder}}^\top",
            comment="Queries from the decoder; keys and values from the encoder's output.",
        ),
        replace(
            steps.weigh(cross.scaled, _TARGET, _SOURCE),
            title="Cross-attention: weights",
            comment="No mask: the whole source may be read.",
        ),
        replace(steps.sum_up(cross.weights, source, _TARGET), title="Cross-attention: output"),
        second,
        replace(forward, title="3. Feed-forward"),
        _add_and_norm(second.result, forward.result, _TARGET, "Add and norm after feed-forward"),
    )


@worked(
    "encoder-of-the-paper",
    "§12",
    "The encoder of the 2017 paper",
    "Six equal layers of width 512 with eight heads of 64.",
    whole("layers", "Layers", 6, 1, 200),
    whole("width", "Width", 512, 1, 16_384),
    whole("heads", "Heads", 8, 1, 128),
)
def _paper(values: Values) -> tuple[Step, ...]:
    layers, width, heads = (int(values[name]) for name in ("layers", "width", "heads"))
    head = sizes.head_width(width, heads)
    parts = np.array(
        [
            sizes.projection_parameters(width, biases=True),
            sizes.feed_forward_parameters(width, 4 * width),
            2 * sizes.norm_parameters(width),
        ]
    )
    return (
        Step("The paper's sizes", r"N,\ d_{\text{model}},\ h", np.array([layers, width, heads]),
             rf"N = {layers},\ d_{{\text{{model}}}} = {width},\ h = {heads}",
             columns=("layers", "width", "heads"), notes=Printed(
                 "6 512 8",
                 INTRODUCTION.at("Basic architecture of encoder, and Complete Encoder Architecture"),
                 "Head attention=8")),
        Step("Width of each head", r"\frac{d_{\text{model}}}{h}", np.array(head),
             rf"\frac{{{width}}}{{{heads}}} = {head}", notes=Printed(
                 "64", INTRODUCTION.at("Complete Encoder Architecture"), "Q,K,V=64")),
        Step("Parameters of one encoder layer", r"4 d^2 + 4 d,\quad 8 d^2 + 5 d,\quad 4 d", parts,
             rf"4 \cdot {width}^2 + 4 \cdot {width} = {latex.number(parts[0])}",
             columns=("self-attention", "feed-forward", "two norms"),
             comment="Counted with biases and a feed-forward layer of width 4·d."),
        Step("Parameters of the stack", r"N \cdot \text{layer}", layers * parts.sum(),
             rf"{layers} \cdot {latex.number(parts.sum())} = {latex.number(layers * parts.sum())}"),
    )  # fmt: skip


@worked(
    "all-positions-at-once",
    "§12",
    "Training at once, generating in turn",
    "With the causal mask each row depends on earlier tokens only, "
    "so all rows can be computed together.",
    given("x", "Target vectors (chosen here)", _STREAM, "token", _DIMENSIONS),
)
def _at_once(values: Values) -> tuple[Step, ...]:
    x = values["x"]
    tokens = numbered("token", len(x))
    allowed = attention.causal_mask(len(x))
    together = attention.attend(x, x, x, allowed=allowed).output
    in_turn = np.stack(
        [attention.attend(x[t : t + 1], x[: t + 1], x[: t + 1]).output[0] for t in range(len(x))]
    )
    return (
        Step("All positions at once, with the causal mask",
             r"\mathrm{softmax}(\text{masked scores})\, V", together,
             rf"\text{{token 2: }} {latex.row(together[2])}", tokens, _DIMENSIONS, "output",
             comment="Training: the right tokens are known, so all are computed in one go."),
        Step("One token at a time, from what is there so far",
             r"z_t = \mathrm{softmax}(q_t K_{\le t}^\top / \sqrt{d_k})\, V_{\le t}",
             in_turn, rf"\text{{token 2: }} {latex.row(in_turn[2])}", tokens, _DIMENSIONS, "output",
             comment="Generation: each new token looks back at the ones before it."),
        steps.difference(together, in_turn, "At once minus in turn", tokens, _DIMENSIONS,
                         comment="The mask makes the two equal; that is why teacher forcing works."),
    )  # fmt: skip
