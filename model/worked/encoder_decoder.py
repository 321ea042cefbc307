"""An encoder layer, a decoder layer with cross-attention, and training on all positions at once."""

import numpy as np

from model.arithmetic import activations, attention, normalization, sizes
from model.worked.example import Array, Sheet, given, numbered, whole, worked

_SOURCE, _TARGET = numbered("source", 3), numbered("target", 2)
_STREAM = [[0.8, -0.2, 0.5, 0.1], [-0.3, 0.9, 0.2, 0.6], [0.4, 0.3, -0.7, 1]]
_WRITTEN = [[0.2, 0.7, -0.4, 0.5], [0.9, -0.1, 0.3, -0.6]]
_RANDOM = np.random.default_rng(12).uniform(-1, 1, (2, 4, 8)).round(1)
_MATRICES = (
    given("first", "W_1 (chosen here)", _RANDOM[0], "dim", "hidden"),
    given("second", "W_2 (chosen here)", _RANDOM[1].reshape(8, 4), "hidden", "dim"),
)


def _add_and_norm(
    sheet: Sheet, stream: Array, update: Array, tokens: tuple[str, ...], title: str
) -> Array:
    total = stream + update
    result, formula = normalization.layer_norm(total), r"\mathrm{LN}(x + f(x))"
    sheet.step(title, formula, result, tokens, "dim", quantity="output")
    sheet.numbers(r"\mathrm{LN}(@) = @", total[0], result[0])
    sheet.remark("The sub-layer's output is added to its input; then each row is normalized.")
    return result


def _feed_forward(
    sheet: Sheet, stream: Array, first: Array, second: Array, tokens: tuple[str, ...], title: str
) -> Array:
    result = activations.feed_forward(stream, first, second)
    sheet.step(title, r"\mathrm{ReLU}(x\, W_1)\, W_2", result, tokens, "dim")
    sheet.numbers(r"\text{@: } @", tokens[0], result[0])
    return result


@worked(
    "§12",
    "One encoder layer, with W = I",
    "Self-attention, add and norm, feed-forward, add and norm.",
    given("source", "Source vectors (chosen here)", _STREAM, _SOURCE, "dim"),
    *_MATRICES,
)
def encoder_layer(sheet: Sheet, source: Array, first: Array, second: Array) -> None:
    sheet.scores(source, source, _SOURCE)
    run = attention.attend(source, source, source)
    sheet.weights(run.scaled, _SOURCE, title="Self-attention weights")
    sheet.remark("No mask: every source token may attend to every other.")
    output = sheet.output(run.weights, source, _SOURCE, title="Self-attention output")
    stream = _add_and_norm(sheet, source, output, _SOURCE, "Add and norm")
    update = _feed_forward(sheet, stream, first, second, _SOURCE, "Feed-forward")
    _add_and_norm(sheet, stream, update, _SOURCE, "Add and norm again")


@worked(
    "§12",
    "One decoder layer, with W = I",
    "Masked self-attention, cross-attention, feed-forward, each with add and norm. "
    "As in English to French: the target reads the source.",
    given("target", "Target vectors (chosen here)", _WRITTEN, _TARGET, "dim"),
    given("source", "Encoder output (chosen here)", _STREAM, _SOURCE, "dim"),
    *_MATRICES,
)
def decoder_layer(sheet: Sheet, target: Array, source: Array, first: Array, second: Array) -> None:
    allowed = attention.causal_mask(len(target))
    run = attention.attend(target, target, target, allowed=allowed)
    hidden = attention.masked(run.scaled, allowed)
    title = "1. Masked self-attention: weights"
    sheet.weights(hidden, _TARGET, row=1, allowed=allowed, title=title)
    sheet.remark("Queries, keys and values all come from the decoder.")
    title = "Masked self-attention: output"
    output = sheet.output(run.weights, target, _TARGET, row=1, title=title)
    stream = _add_and_norm(sheet, target, output, _TARGET, "Add and norm")

    title = "2. Cross-attention: scores"
    formula = r"S = Q_{\text{decoder}}\, K_{\text{encoder}}^\top"
    sheet.scores(stream, source, _TARGET, _SOURCE, title=title, formula=formula)
    sheet.remark("Queries from the decoder; keys and values from the encoder's output.")
    run = attention.attend(stream, source, source)
    sheet.weights(run.scaled, _TARGET, _SOURCE, title="Cross-attention: weights")
    sheet.remark("No mask: the whole source may be read.")
    output = sheet.output(run.weights, source, _TARGET, title="Cross-attention: output")
    stream = _add_and_norm(sheet, stream, output, _TARGET, "Add and norm after cross-attention")

    update = _feed_forward(sheet, stream, first, second, _TARGET, "3. Feed-forward")
    _add_and_norm(sheet, stream, update, _TARGET, "Add and norm after feed-forward")


@worked(
    "§12",
    "The encoder of the 2017 paper",
    "Six equal layers of width 512 with eight heads of 64.",
    whole("layers", "Layers", 6, 1, 200),
    whole("width", "Width", 512, 1, 16_384),
    whole("heads", "Heads", 8, 1, 128),
)
def encoder_of_the_paper(sheet: Sheet, layers: int, width: int, heads: int) -> None:
    configuration, names = (layers, width, heads), ("layers", "width", "heads")
    sheet.step("The paper's sizes", r"N,\ d_{\text{model}},\ h", configuration, names)
    sheet.numbers(r"N = @,\ d_{\text{model}} = @,\ h = @", *configuration)
    head = sizes.head_width(width, heads)
    sheet.step("Width of each head", r"\frac{d_{\text{model}}}{h}", head)
    sheet.numbers(r"\frac{@}{@} = @", width, heads, head)
    parts = {
        "self-attention": sizes.projection_parameters(width, biases=True),
        "feed-forward": sizes.feed_forward_parameters(width, 4 * width),
        "two norms": 2 * sizes.norm_parameters(width),
    }
    counts, formula = tuple(parts.values()), r"4 d^2 + 4 d,\quad 8 d^2 + 5 d,\quad 4 d"
    sheet.step("Parameters of one encoder layer", formula, counts, tuple(parts))
    sheet.numbers(r"4 \cdot @^2 + 4 \cdot @ = @", width, width, counts[0])
    sheet.remark("Counted with biases and a feed-forward layer of width 4·d.")
    layer = sum(counts)
    sheet.step("Parameters of the stack", r"N \cdot \text{layer}", layers * layer)
    sheet.numbers(r"@ \cdot @ = @", layers, layer, layers * layer)


@worked(
    "§12",
    "Training in parallel, generating one token at a time",
    "With the causal mask each row depends on earlier tokens only, "
    "so all rows can be computed together.",
    given("x", "Target vectors (chosen here)", _STREAM, "token", "dim"),
)
def all_positions_at_once(sheet: Sheet, x: Array) -> None:
    together = attention.attend(x, x, x, allowed=attention.causal_mask(len(x))).output
    title = "All positions in parallel, with the causal mask"
    formula = r"\mathrm{softmax}(\text{masked scores})\, V"
    sheet.step(title, formula, together, "token", "dim", quantity="output")
    sheet.numbers(r"\text{token 2: } @", together[2])
    sheet.remark("Training: the right tokens are known, so all positions are computed in parallel.")
    in_turn = np.stack(
        [attention.attend(x[t : t + 1], x[: t + 1], x[: t + 1]).output[0] for t in range(len(x))]
    )
    title = "One token at a time, from the tokens so far"
    formula = r"z_t = \mathrm{softmax}(q_t K_{\le t}^\top / \sqrt{d_k})\, V_{\le t}"
    sheet.step(title, formula, in_turn, "token", "dim", quantity="output")
    sheet.numbers(r"\text{token 2: } @", in_turn[2])
    sheet.remark("Generation: each new token attends to the ones before it.")
    sheet.difference(together, in_turn, "In parallel minus one at a time", "token", "dim")
    sheet.remark("The mask makes the two equal; that is why teacher forcing works.")
