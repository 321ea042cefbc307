"""The whole model as one readable listing of plain PyTorch, written from its config.

Run, it defines `forward(ids, w)`, or `forward(ids, w, target)` for an encoder–decoder. w holds the weights by
name. What the model does not have is not in the listing.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from model.code import attention, layer
from model.code.line import Length, Line, Plan, inside, logits_table
from model.nn.config import Stack, TransformerConfig
from model.nn.places import Place

if TYPE_CHECKING:
    from model.run.model import Model

_PART = """
def part(w, name):
    \"""The weights of one part of the model: those whose names begin with its name.\"""
    start = name + "."
    return {key.removeprefix(start): w[key] for key in w if key.startswith(start)}
"""


def listing(model: "Model") -> str:
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
    _refuse_stages(config)
    plan = Plan(config, frozenset(names), place)
    functions: list[list[Line]] = []
    if plan.reads_two:
        functions.append(list(_embed(plan)))
    if config.positions == "sinusoidal" and not plan.has("positions.weight"):
        functions.append(list(_sinusoids(config)))
    if config.turns_positions:
        functions.append(list(attention.rotate(plan)))
    functions += [list(layer.norm(plan)), list(attention.attention(plan))]
    if config.d_mlp:
        functions.append(list(layer.feed_forward(plan)))
    functions += [list(layer.layer(plan, stack)) for stack in _stacks(config)]
    functions += [list(_forward(plan)), _of_text(_PART)]
    listed = list(_imports(config))
    for function in functions:
        listed += [Line(""), Line(""), *function]
    return tuple(listed)


def _refuse_stages(config: TransformerConfig) -> None:
    """Raises ValueError for stages of attention that no listing writes."""
    if config.positions in ("buckets", "disentangled"):
        raise ValueError(
            "it adds learned biases to its scores, which this app cannot write as code"
        )
    if config.shape != "decoder" and (config.window or config.positions == "alibi"):
        raise ValueError(
            "its windows and biases look both ways, which this app cannot write as code"
        )


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


def _embed(plan: Plan) -> Iterator[Line]:
    """The function that both stacks of an encoder–decoder begin with."""
    yield Line("def embed(ids, w):", None, "tokens")
    yield inside("tokens")('"""The vectors that the first layer reads."""')
    yield from _embedding(plan, "", "n")
    yield inside("tokens")("return x", "n", plan.config.d_model)


def _embedding(plan: Plan, within: str, length: Length) -> Iterator[Line]:
    """From ids to vectors. within: what stands before the names of the tables."""
    config, size = plan.config, (length, plan.config.d_model)
    factor = f" * {config.d_model}**0.5" if config.scaled_embedding else ""
    yield inside("tokens")(f'x = w["{within}tokens.weight"][ids]{factor}', *size)
    if plan.has("positions.weight"):
        table = f'w["{within}positions.weight"][: ids.shape[-1]]'
        yield inside("positions")(f"x = x + {table}", *size)
    elif config.adds_positions:
        yield inside("positions")("x = x + sinusoids(ids.shape[-1])", *size)
    if plan.has("segments.weight"):
        which = "0"
        if config.separator:
            yield inside("tokens")(f"ends = (ids == {config.separator}).long()", length)
            which = "(ends.cumsum(-1) - ends).clamp(max=1)"
        yield inside("tokens")(f'x = x + w["{within}segments.weight"][{which}]', *size)
    if config.embedding_norm:
        yield inside("norm")(f'x = norm(x, part(w, "{within}norm"))', *size)


def _forward(plan: Plan) -> Iterator[Line]:
    config = plan.config
    if not plan.reads_two:
        (stack,) = _stacks(config)
        results = {
            "encoder": "a vector for each token",
            "decoder": "logits for the token after each one",
        }
        yield Line("def forward(ids, w):")
        yield Line(f'    """From the ids of tokens to {results[stack]}."""')
        yield from _embedding(plan, "embedding.", "n")
        yield from _layers(plan, stack, "layer(x, ", "n")
    else:
        yield Line("def forward(ids, w, target):")
        yield Line(
            '    """From the ids of a source and a target to logits for the token after each one."""'
        )
        yield from _stack(plan, "encoder", "ids", "encoder_layer(x, ", "source")
        yield inside("memory")("memory = x", "source", config.d_model)
        yield from _stack(plan, "decoder", "target", "decoder_layer(x, memory, ", "target")
    length: Length = "target" if plan.reads_two else "n"
    if config.shape == "encoder":
        yield inside("vectors")("return x", length, config.d_model)
        return
    yield inside("logits")(f"return {_logits(plan)}", length, config.d_vocab)


def _stack(plan: Plan, stack: Stack, ids: str, call: str, length: Length) -> Iterator[Line]:
    """Embedding and layers of one of two stacks, which may have tables of their own."""
    own = "embedding" if "embedding.tokens.weight" in plan.names else f"{stack}.embedding"
    embedded = f'x = embed({ids}, part(w, "{own}"))'
    yield inside("tokens")(embedded, length, plan.config.d_model)
    yield from _layers(plan, stack, call, length)


def _layers(plan: Plan, stack: Stack, call: str, length: Length) -> Iterator[Line]:
    config = plan.config
    size = length, config.d_model
    depth = config.encoder_layers if stack == "encoder" else config.decoder_layers
    windows = [config.window_of(at) or None for at in range(depth)]
    each = f"i, window in enumerate({windows})" if config.window else f"i in range({depth})"
    given = ", window" * bool(config.window)
    yield Line(f"    for {each}:", None, "attention")
    yield inside("attention")(f'    x = {call}part(w, f"{stack}.blocks.{{i}}"){given})', *size)
    if f"{stack}.final_norm.gamma" in plan.names:
        yield inside("norm")(f'x = norm(x, part(w, "{stack}.final_norm"))', *size)


def _logits(plan: Plan) -> str:
    """The output matrix, and what is added."""
    bias = ' + w["output.bias"]' if "output.bias" in plan.names else ""
    return f'x @ w["{logits_table(plan.names)}.weight"].T{bias}'
