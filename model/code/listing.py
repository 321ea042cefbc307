"""The whole model as one readable listing of plain PyTorch, written from its config.

Run, it defines `forward(ids, w)`, or `forward(ids, w, target)` for an encoder–decoder. w holds the weights by
name. What the model does not have is not in the listing.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from model.code import attention, layer
from model.code.line import Length, Line, Model, inside
from model.nn.config import Stack, TransformerConfig
from model.nn.places import Place

if TYPE_CHECKING:
    from model.run.model import Model as RunningModel

_PART = """
def part(w, name):
    \"""The weights of one part of the model: those whose names begin with its name.\"""
    start = name + "."
    return {key.removeprefix(start): w[key] for key in w if key.startswith(start)}
"""


def listing(model: "RunningModel") -> str:
    """The listing of a loaded model, with the shape of each result as a comment."""
    return written(lines(model.config, model.module.named_weights()))


def written(listed: Iterable[Line], lengths: Mapping[Length, int] | None = None) -> str:
    """Lines as a program, with their shapes."""
    return "".join(f"{line.written(lengths)}\n" for line in listed)


def lines(
    config: TransformerConfig, names: Iterable[str], place: Place | None = None
) -> tuple[Line, ...]:
    """The listing line by line. names: of the model's weights, which tell what is added and where.

    place: the attention sub-layer whose shapes are written, where one function serves several kinds.
    Raises ValueError, with a sentence, for a model that cannot be written so.
    """
    model = Model(config, frozenset(names), place)
    functions: list[list[Line]] = []
    if model.reads_two:
        functions.append(list(_embed(model)))
    if config.positions == "sinusoidal" and not model.has("positions.weight"):
        functions.append(list(_sinusoids(config)))
    if config.turns_positions:
        functions.append(list(attention.rotate(model)))
    functions += [list(layer.norm(model)), list(attention.attention(model))]
    if config.d_mlp:
        functions.append(list(layer.feed_forward(model)))
    functions += [list(layer.layer(model, stack)) for stack in _stacks(config)]
    functions += [list(_forward(model)), _of_text(_PART)]
    listed = list(_imports(config))
    for function in functions:
        listed += [Line(""), Line(""), *function]
    return tuple(listed)


def _of_text(text: str) -> list[Line]:
    return [Line(line) for line in text.strip().splitlines()]


def _stacks(config: TransformerConfig) -> tuple[Stack, ...]:
    depths: dict[Stack, int] = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    return tuple(stack for stack, depth in depths.items() if depth)


def _imports(config: TransformerConfig) -> Iterator[Line]:
    yield Line("import torch")
    if config.d_mlp:
        yield Line(f"from torch.nn.functional import {layer.ACTIVATION[config.activation][0]}")


def _sinusoids(config: TransformerConfig) -> Iterator[Line]:
    """The function that makes the table of positions where none is stored."""
    line, width = inside("positions"), config.d_model
    yield Line("def sinusoids(n):", None, "positions")
    yield line('"""A row for each position: sines in even columns, cosines in odd ones."""')
    power = f"torch.arange(0, {width}, 2).double() / {width}"
    yield line("positions = torch.arange(n).double()[:, None]", "n", 1)
    yield line(f"angles = positions / 10000 ** ({power})", "n", width // 2)
    columns = "torch.stack([angles.sin(), angles.cos()], -1)"
    yield line(f"return {columns}.flatten(1).float()", "n", width)


def _embed(model: Model) -> Iterator[Line]:
    """The function that both stacks of an encoder–decoder begin with."""
    yield Line("def embed(ids, w):", None, "tokens")
    yield inside("tokens")('"""The vectors that the first layer reads."""')
    yield from _embedding(model, "", "n")
    yield inside("tokens")("return x", "n", model.config.d_model)


def _embedding(model: Model, within: str, length: Length) -> Iterator[Line]:
    """From ids to vectors. within: what stands before the names of the tables."""
    config, size = model.config, (length, model.config.d_model)
    factor = f" * {config.d_model}**0.5" if config.scaled_embedding else ""
    yield inside("tokens")(f'x = w["{within}tokens.weight"][ids]{factor}', *size)
    if model.has("positions.weight"):
        table = f'w["{within}positions.weight"][: ids.shape[-1]]'
        yield inside("positions")(f"x = x + {table}", *size)
    elif config.adds_positions:
        yield inside("positions")("x = x + sinusoids(ids.shape[-1])", *size)
    if model.has("segments.weight"):
        yield inside("tokens")(f'x = x + w["{within}segments.weight"][0]', *size)
    if config.embedding_norm:
        yield inside("norm")(f'x = norm(x, part(w, "{within}norm"))', *size)


def _forward(model: Model) -> Iterator[Line]:
    config = model.config
    if not model.reads_two:
        (stack,) = _stacks(config)
        results = {
            "encoder": "a vector for each token",
            "decoder": "logits for the token after each one",
        }
        yield Line("def forward(ids, w):")
        yield Line(f'    """From the ids of tokens to {results[stack]}."""')
        yield from _embedding(model, "embedding.", "n")
        yield from _layers(model, stack, "layer(x, ", "n")
    else:
        yield Line("def forward(ids, w, target):")
        yield Line(
            '    """From the ids of a source and a target to logits for the token after each one."""'
        )
        yield from _stack(model, "encoder", "ids", "encoder_layer(x, ", "source")
        yield inside("memory")("memory = x", "source", config.d_model)
        yield from _stack(model, "decoder", "target", "decoder_layer(x, memory, ", "target")
    length: Length = "target" if model.reads_two else "n"
    if config.shape == "encoder":
        yield inside("vectors")("return x", length, config.d_model)
        return
    yield inside("logits")(f"return {_logits(model)}", length, config.d_vocab)


def _stack(model: Model, stack: Stack, ids: str, call: str, length: Length) -> Iterator[Line]:
    """Embedding and layers of one of two stacks, which may have tables of their own."""
    own = "embedding" if "embedding.tokens.weight" in model.names else f"{stack}.embedding"
    embedded = f'x = embed({ids}, part(w, "{own}"))'
    yield inside("tokens")(embedded, length, model.config.d_model)
    yield from _layers(model, stack, call, length)


def _layers(model: Model, stack: Stack, call: str, length: Length) -> Iterator[Line]:
    config = model.config
    size = length, config.d_model
    depth = config.encoder_layers if stack == "encoder" else config.decoder_layers
    yield Line(f"    for i in range({depth}):", None, "attention")
    yield inside("attention")(f'    x = {call}part(w, f"{stack}.blocks.{{i}}"))', *size)
    if config.norm_place == "pre":
        yield inside("norm")(f'x = norm(x, part(w, "{stack}.final_norm"))', *size)


def _logits(model: Model) -> str:
    """The output matrix: the token table where the two are tied."""
    tables = ("output", "embedding.tokens", "decoder.embedding.tokens")
    table = next(name for name in tables if f"{name}.weight" in model.names)
    bias = ' + w["output.bias"]' if "output.bias" in model.names else ""
    return f'x @ w["{table}.weight"].T{bias}'
