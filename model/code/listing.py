"""The whole model as one readable listing of plain PyTorch, written from its config.

Run, it defines `forward(ids, w)`, or `forward(ids, w, target)` for an encoder–decoder. w holds the weights by
name. What the model does not have is not in the listing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from model.nn.activations import ACTIVATION_LAWS
from model.nn.config import Stack, TransformerConfig
from model.nn.places import Place, TokenPart
from model.nn.positions import RotaryPairs
from model.nn.stages import SCORE_STAGES
from model.system.border import at_border

if TYPE_CHECKING:
    from model.run.model import Model

Length = Literal["n", "m", "source", "target"]  # tokens: n of the queries, m of the keys

TensorShape = tuple[int | Length, ...]

INDENT = "    "


@dataclass(frozen=True)
class CodeLine:
    """A line of code. shape: of what it computes; None for a line that computes nothing. stage: the stage of
    attention that it computes."""

    code: str
    shape: TensorShape | None = None
    part: TokenPart | None = None
    stage: str = ""

    def shaped(self, lengths: Mapping[Length, int] | None = None) -> str:
        """The shape as it is written, (8, 13, 32); with letters for lengths that are not given."""
        if self.shape is None:
            return ""
        known = lengths or {}
        sizes = ", ".join(
            str(size if isinstance(size, int) else known.get(size, size)) for size in self.shape
        )
        return f"({sizes},)" if len(self.shape) == 1 else f"({sizes})"

    def written(self, lengths: Mapping[Length, int] | None = None) -> str:
        """The line with its shape in a comment."""
        shape = self.shaped(lengths)
        return f"{self.code}  # {shape}" if shape else self.code


@dataclass(frozen=True)
class ListingPlan:
    """What a listing is written from: the config, and the names of the weights.

    place: the attention sub-layer whose lengths are shown, where one function serves several.
    """

    config: TransformerConfig
    names: Collection[str]
    place: Place | None = None

    def has(self, ending: str) -> bool:
        """Whether a weight of the model has a name that ends so."""
        return any(name == ending or name.endswith(f".{ending}") for name in self.names)

    @property
    def reads_two(self) -> bool:
        """Whether it is an encoder–decoder."""
        return self.config.shape == "encoder-decoder"


def inside(part: TokenPart) -> Callable[..., CodeLine]:
    """Lines of a function's body in one block: code, then the sizes of its result."""

    def line(code: str, *shape: int | Length, stage: str = "") -> CodeLine:
        return CodeLine(INDENT + code, shape or None, part, stage)

    return line


def linear(plan: ListingPlan, read: str, name: str, within: str = "") -> str:
    """x @ W.T + b in code, with the bias where the model has it.

    Args:
        read: the code of x.
        name: of the map in the dictionary `w` of this code.
        within: what stands before that name among the names of all weights.
    """
    bias = f' + w["{name}.bias"]' if plan.has(f"{within}{name}.bias") else ""
    return f'{read} @ w["{name}.weight"].T{bias}'


def logits_table(names: Collection[str]) -> str:
    """The name of the matrix that makes the logits: the token table where the two are tied. names: of all
    weights."""
    tables = ("output", "embedding.tokens", "decoder.embedding.tokens")
    return next(name for name in tables if f"{name}.weight" in names)


_PART = """
def part(w, name):
    \"""The weights of one part of the model: those whose names begin with its name.\"""
    start = name + "."
    return {key.removeprefix(start): w[key] for key in w if key.startswith(start)}
"""


@at_border
def listing(model: "Model") -> str:
    """The listing of a loaded model, with the shape of each result as a comment.

    >>> from model.code import listing
    >>> "def attention(" in listing(model)
    True
    """
    return written(lines(model.config, model.module.named_weights()))


def written(listed: Iterable[CodeLine], lengths: Mapping[Length, int] | None = None) -> str:
    """Lines as a program, with their shapes."""
    return "".join(f"{line.written(lengths)}\n" for line in listed)


def lines(
    config: TransformerConfig, names: Iterable[str], place: Place | None = None
) -> tuple[CodeLine, ...]:
    """The listing line by line. names: of the model's weights, which tell what is added and where.

    place: the attention sub-layer whose shapes are written, where one function serves several kinds.
    Raises ValueError, with a sentence, for a model that cannot be written so.
    """
    # Raises ValueError for stages of attention that no listing writes.
    if config.biases_positions and not config.position_law.relative:
        raise ValueError(
            "it adds learned biases to its scores, which this app cannot write as code"
        )
    if config.shape != "decoder" and (config.window or config.biases_positions):
        raise ValueError(
            "its windows and biases look both ways, which this app cannot write as code"
        )
    plan = ListingPlan(config, frozenset(names), place)
    functions: list[list[CodeLine]] = []
    if plan.reads_two:
        functions.append(list(_embed(plan)))
    if config.adds_positions and not plan.has("positions.weight"):
        functions.append(list(_sinusoids(config)))
    if config.turns_positions:
        functions.append(list(rotate(plan)))
    functions += [list(norm(plan)), list(attention(plan))]
    if config.d_mlp:
        functions.append(list(feed_forward(plan)))
    functions += [list(layer(plan, stack)) for stack in _stacks(config)]
    functions += [list(_forward(plan)), [CodeLine(line) for line in _PART.strip().splitlines()]]
    listed = list(_imports(config))
    for function in functions:
        listed += [CodeLine(""), CodeLine(""), *function]
    return tuple(listed)


def _stacks(config: TransformerConfig) -> tuple[Stack, ...]:
    depths: dict[Stack, int] = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    return tuple(stack for stack, depth in depths.items() if depth)


def _imports(config: TransformerConfig) -> Iterator[CodeLine]:
    yield CodeLine("import torch")
    if config.d_mlp:
        yield CodeLine(
            f"from torch.nn.functional import {ACTIVATION_LAWS[config.activation].called}"
        )


def _sinusoids(config: TransformerConfig) -> Iterator[CodeLine]:
    """The function that makes the table of positions where none is stored."""
    line, width = inside("positions"), config.d_model
    yield CodeLine("def sinusoids(n):", None, "positions")
    yield line('"""A row for each position: sines in even columns, cosines in odd ones."""')
    power = f"torch.arange(0, {width}, 2).double() / {width}"
    yield line("positions = torch.arange(n).double()[:, None]", "n", 1)
    yield line(f"angles = positions / 10000 ** ({power})", "n", width // 2)
    columns = "torch.stack([angles.sin(), angles.cos()], -1)"
    yield line(f"return {columns}.flatten(1).float()", "n", width)


def _embed(plan: ListingPlan) -> Iterator[CodeLine]:
    """The function that both stacks of an encoder–decoder begin with."""
    yield CodeLine("def embed(ids, w):", None, "tokens")
    yield inside("tokens")('"""The vectors that the first layer reads."""')
    yield from _embedding(plan, "", "n")
    yield inside("tokens")("return x", "n", plan.config.d_model)


def _embedding(plan: ListingPlan, within: str, length: Length) -> Iterator[CodeLine]:
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


def _forward(plan: ListingPlan) -> Iterator[CodeLine]:
    config = plan.config
    if not plan.reads_two:
        (stack,) = _stacks(config)
        results = {
            "encoder": "a vector for each token",
            "decoder": "logits for the token after each one",
        }
        yield CodeLine("def forward(ids, w):")
        yield CodeLine(f'    """From the ids of tokens to {results[stack]}."""')
        yield from _embedding(plan, "embedding.", "n")
        yield from _layers(plan, stack, "layer(x, ", "n")
    else:
        yield CodeLine("def forward(ids, w, target):")
        yield CodeLine(
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


def _stack(
    plan: ListingPlan, stack: Stack, ids: str, call: str, length: Length
) -> Iterator[CodeLine]:
    """Embedding and layers of one of two stacks, which may have tables of their own."""
    own = "embedding" if "embedding.tokens.weight" in plan.names else f"{stack}.embedding"
    embedded = f'x = embed({ids}, part(w, "{own}"))'
    yield inside("tokens")(embedded, length, plan.config.d_model)
    yield from _layers(plan, stack, call, length)


def _layers(plan: ListingPlan, stack: Stack, call: str, length: Length) -> Iterator[CodeLine]:
    config = plan.config
    size = length, config.d_model
    depth = config.encoder_layers if stack == "encoder" else config.decoder_layers
    windows = [config.window_of(at) or None for at in range(depth)]
    each = f"i, window in enumerate({windows})" if config.window else f"i in range({depth})"
    given = ", window" * bool(config.window)
    yield CodeLine(f"    for {each}:", None, "attention")
    yield inside("attention")(f'    x = {call}part(w, f"{stack}.blocks.{{i}}"){given})', *size)
    if f"{stack}.final_norm.gamma" in plan.names:
        yield inside("norm")(f'x = norm(x, part(w, "{stack}.final_norm"))', *size)


def _logits(plan: ListingPlan) -> str:
    """The output matrix, and what is added."""
    bias = ' + w["output.bias"]' if "output.bias" in plan.names else ""
    return f'x @ w["{logits_table(plan.names)}.weight"].T{bias}'


def norm(plan: ListingPlan) -> Iterator[CodeLine]:
    """The function `norm`, as the model has it."""
    config, line = plan.config, inside("norm")
    width, shift = config.d_model, ' + w["beta"]' if config.shifts else ""
    yield CodeLine("def norm(x, w):", None, "norm")
    yield line(f'"""{config.norm_law.words_in_code}"""')
    for code, is_wide in config.norm_law.code:
        yield line(code.format(epsilon=f"{config.epsilon:.6g}"), "n", width if is_wide else 1)
    yield line(f'return normalized * w["gamma"]{shift}', "n", width)


def feed_forward(plan: ListingPlan) -> Iterator[CodeLine]:
    """The function `feed_forward`, with the model's own activation and its gate if it has one."""
    config, line = plan.config, inside("feed_forward")
    within, activated = "feed_forward.", ACTIVATION_LAWS[config.activation].code
    yield CodeLine("def feed_forward(x, w):", None, "feed_forward")
    yield line('"""Each token\'s vector goes through two linear maps by itself."""')
    if config.is_gated:
        yield line(f"gate = {linear(plan, 'x', 'gate', within)}", "n", config.d_mlp)
        yield line(f"up = {linear(plan, 'x', 'w_in', within)}", "n", config.d_mlp)
        yield line(f"hidden = {activated.format('gate')} * up", "n", config.d_mlp)
    else:
        yield line(f"hidden = {linear(plan, 'x', 'w_in', within)}", "n", config.d_mlp)
        yield line(f"hidden = {activated.format('hidden')}", "n", config.d_mlp)
    yield line(f"return {linear(plan, 'hidden', 'w_out', within)}", "n", config.d_model)


def layer(plan: ListingPlan, stack: Stack) -> Iterator[CodeLine]:
    """The function of one layer: `layer`, or one for each of two stacks."""
    name, reads = ("layer", "x, w") if not plan.reads_two else (f"{stack}_layer", "x, w")
    if plan.reads_two and stack == "decoder":
        reads = "x, memory, w"
    reads += ", window" * bool(plan.config.window)
    yield CodeLine(f"def {name}({reads}):")
    yield CodeLine('    """Each sub-layer adds what it computes to the residual stream x."""')
    length: Length = "n" if not plan.reads_two else "source" if stack == "encoder" else "target"
    steps = list(_sub_layers(plan, stack))
    yield from _parallel(plan, steps) if plan.config.parallel else _in_turn(plan, steps, length)


ListedSubLayer = tuple[
    TokenPart, str, str, str
]  # its block, its norm, its result's name, and the call


def _sub_layers(plan: ListingPlan, stack: Stack) -> Iterator[ListedSubLayer]:
    """The sub-layers in order; {} is what each one reads."""
    if not plan.reads_two:
        window = ", window" * bool(plan.config.window)
        own = f'attention({{}}, part(w, "self_attention"){window})'
        yield "attention", "self_norm", "attended", own
    else:
        causal = ", causal=True" if stack == "decoder" else ""
        own = 'attention({0}, {0}, part(w, "self_attention")' + f"{causal})"
        yield "attention", "self_norm", "attended", own
    if plan.reads_two and stack == "decoder":
        cross = 'attention({}, memory, part(w, "cross_attention"))'
        yield "cross", "cross_norm", "looked_up", cross
    if plan.config.d_mlp:
        own = 'feed_forward({}, part(w, "feed_forward"))'
        yield "feed_forward", "feed_forward_norm", "computed", own


def _in_turn(plan: ListingPlan, steps: list[ListedSubLayer], length: Length) -> Iterator[CodeLine]:
    """Sub-layer after sub-layer, with the norm before each (pre-norm) or after its sum (post-norm)."""
    size = (length, plan.config.d_model)
    pre = plan.config.norms_input
    for number, (part, norm_name, result, call) in enumerate(steps):
        last = number == len(steps) - 1
        if pre:
            yield inside("norm")(f'normed = norm(x, part(w, "{norm_name}"))', *size)
        yield inside(part)(f"{result} = {call.format('normed' if pre else 'x')}", *size)
        ends = "return" if last and pre else "x ="
        yield inside("add")(f"{ends} x + {result}", *size)
        if not pre:
            ends = "return" if last else "x ="
            yield inside("norm")(f'{ends} norm(x, part(w, "{norm_name}"))', *size)


def _parallel(plan: ListingPlan, steps: list[ListedSubLayer]) -> Iterator[CodeLine]:
    """All sub-layers read the same x, and one sum takes up their results."""
    size = ("n", plan.config.d_model)
    for number, (part, norm_name, result, call) in enumerate(steps):
        if number == 0 or not plan.config.shared_norm:
            yield inside("norm")(f'normed = norm(x, part(w, "{norm_name}"))', *size)
        yield inside(part)(f"{result} = {call.format('normed')}", *size)
    yield inside("add")(" + ".join(["return x", *(step[2] for step in steps)]), *size)


def attention(plan: ListingPlan) -> Iterator[CodeLine]:
    """The function `attention`. Queries come from x; so do keys and values, except in cross-attention."""
    config, part = plan.config, _attention_part(plan)
    given = "x, source, w, causal=False" if plan.reads_two else "x, w"
    given += ", window" * bool(config.window)
    line = inside(part)
    yield CodeLine(f"def attention({given}):", None, part)
    yield line('"""Each token mixes the values of the tokens that it attends to."""')
    yield from _vectors(plan)
    heads, width, keys = config.heads, config.head_width, "m" if plan.reads_two else "n"
    all_weights = (heads, "n", keys)
    yield line("scores = q @ k.transpose(-2, -1)", *all_weights, stage="scores")
    yield line(f"scaled = scores / {width}**0.5", *all_weights, stage="scaled")
    read, later = _later_stages(plan)
    yield from later
    yield from _mask(plan, read)
    masked = "masked" if config.shape == "decoder" else read
    if config.sinks:
        sinks = f'sinks = w["sinks"][:, None, None].expand({heads}, scores.shape[-2], 1)'
        yield line(sinks, heads, "n", 1, stage="weights")
        masked = f"torch.cat([{masked}, sinks], -1)"
    kept = "[..., :-1]" if config.sinks else ""
    yield line(f"weights = {masked}.softmax(-1){kept}", *all_weights, stage="weights")
    yield line("output = weights @ v", heads, "n", width, stage="output")
    joined = "output = output.transpose(-3, -2).flatten(-2)"
    yield line(joined, "n", heads * width, stage="output")
    result = linear(plan, "output", "output", "self_attention.")
    yield line(f"return {result}", "n", config.d_model, stage="output")


def _later_stages(plan: ListingPlan) -> tuple[str, list[CodeLine]]:
    """What stands between scaled scores and the mask: the name of the last scores, and the lines."""
    config, line, read, listed = plan.config, inside(_attention_part(plan)), "scaled", []
    for stage in SCORE_STAGES:
        if lines := stage.listing(config, read):
            listed += [line(code, *sizes, stage=stage.name) for code, sizes in lines]
            read = stage.name
    return read, listed


def _attention_part(plan: ListingPlan) -> TokenPart:
    return "cross" if plan.place is not None and plan.place.kind == "cross" else "attention"


def _vectors(plan: ListingPlan) -> Iterator[CodeLine]:
    """Queries, keys and values, split into heads, as the scores read them."""
    config, line = plan.config, inside(_attention_part(plan))
    heads, groups, width = config.heads, config.key_head_count, config.head_width
    source = "source" if plan.reads_two else "x"
    of_keys = "m" if plan.reads_two else "n"
    rows = (
        ("q", "x", "query", heads, "n"),
        ("k", source, "key", groups, of_keys),
        ("v", source, "value", groups, of_keys),
    )
    for letter, read, name, count, length in rows:
        made = linear(plan, read, name, "self_attention.")
        yield line(f"{letter} = {made}", length, count * width, stage=name)
    for letter, _, name, count, length in rows:
        split = f"{letter} = {letter}.unflatten(-1, ({count}, {width})).transpose(-3, -2)"
        yield line(split, count, length, width, stage=name)
    if config.projection.normed:
        for letter, _, name, count, length in rows[:2]:
            normed = f'{letter} = norm({letter}, part(w, "{name}_norm"))'
            yield line(normed, count, length, width, stage=name)
    if config.turns_positions:
        before = "if source is x: " if plan.reads_two else ""
        for letter, _, name, count, length in rows[:2]:
            turned = f"{before}{letter} = rotate({letter})"
            yield line(turned, count, length, width, stage=name)
    if config.groups_keys:
        shared = heads // groups
        yield CodeLine(
            f"    # {shared} heads of queries share a head of keys and values",
            None,
            _attention_part(plan),
        )
        for letter, _, name, _, length in rows[1:]:
            repeated = f"{letter} = {letter}.repeat_interleave({shared}, -3)"
            yield line(repeated, heads, length, width, stage=name)


def _mask(plan: ListingPlan, read: str) -> Iterator[CodeLine]:
    """The look-ahead mask: none in an encoder; in an encoder–decoder where it is asked for. read: the scores
    before it."""
    line, heads = inside(_attention_part(plan)), plan.config.heads
    future = "torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)"
    filled = 'masked_fill(future, float("-inf"))'
    if plan.config.shape == "decoder":
        yield line(f"future = {future}", "n", "n", stage="masked")
        if plan.config.window:
            past = "torch.ones_like(future).tril(-(window or len(x)))"
            yield line(f"past = {past}", "n", "n", stage="masked")
            filled = 'masked_fill(future | past, float("-inf"))'
        yield line(f"masked = {read}.{filled}", heads, "n", "n", stage="masked")
    elif plan.reads_two:
        masks = plan.place is not None and plan.place.kind == "causal"
        sizes = ("n", "m") if masks else ()
        yield line("if causal:")
        yield line(f"    future = {future}", *sizes, stage="masked")
        yield line(
            f"    scaled = scaled.{filled}", *((heads, *sizes) if masks else ()), stage="masked"
        )


_HALVES: dict[RotaryPairs, tuple[str, str]] = {
    "halves": ("{}.chunk(2, -1)", "torch.cat(turned, -1)"),
    "neighbours": ("{0}[..., 0::2], {0}[..., 1::2]", "torch.stack(turned, -1).flatten(-2)"),
}


def rotate(plan: ListingPlan) -> Iterator[CodeLine]:
    """The function `rotate`, where positions turn queries and keys. Raises ValueError for pairs of dimensions
    that have no simple rule."""
    config = plan.config
    if config.rotary_pairs not in _HALVES:
        raise ValueError(
            "it turns its queries and keys in a way that this app cannot write as code"
        )
    halves, joined = _HALVES[config.rotary_pairs]
    width, line = config.rotary_dim, inside("attention")
    heads, part_turns = config.heads, config.rotary_dim < config.head_width
    read = "turning" if part_turns else "x"
    yield CodeLine("def rotate(x):", None, "attention")
    yield line('"""Turns each pair of dimensions by an angle that grows with the position."""')
    power = f"torch.arange(0, {width}, 2) / {width}"
    yield line(f"frequencies = 1 / {config.rotary_base:.10g} ** ({power})", width // 2)
    where = "torch.arange(x.shape[-2])[:, None]"
    yield line(f"angles = {where} * frequencies", "n", width // 2)
    if part_turns:
        yield line(f"turning, still = x[..., :{width}], x[..., {width}:]")
    yield line(f"first, second = {halves.format(read)}", heads, "n", width // 2)
    yield line("cosine, sine = angles.cos(), angles.sin()", "n", width // 2)
    yield line("turned = first * cosine - second * sine, second * cosine + first * sine")
    result = f"torch.cat([{joined}, still], -1)" if part_turns else joined
    yield line(f"return {result}", heads, "n", config.head_width)
