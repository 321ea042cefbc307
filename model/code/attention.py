"""The lines of attention, and of rotary positions."""

from collections.abc import Iterator

from model.code.line import Line, Plan, inside, linear
from model.nn.biases import alibi_slopes
from model.nn.config import RotaryPairs
from model.nn.places import Part


def attention(plan: Plan) -> Iterator[Line]:
    """The function `attention`. Queries come from x; so do keys and values, except in cross-attention."""
    config, part = plan.config, _part(plan)
    given = "x, source, w, causal=False" if plan.reads_two else "x, w"
    given += ", window" * bool(config.window)
    line = inside(part)
    yield Line(f"def attention({given}):", None, part)
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


def _later_stages(plan: Plan) -> tuple[str, list[Line]]:
    """What stands between scaled scores and the mask: the name of the last scores, and the lines."""
    config, line, read, listed = plan.config, inside(_part(plan)), "scaled", []
    size = config.heads, "n", "n"
    if config.cap:
        capped = f"capped = {config.cap:g} * ({read} / {config.cap:g}).tanh()"
        listed.append(line(capped, *size, stage="capped"))
        read = "capped"
    if config.positions == "alibi":
        slopes = f"slopes = torch.tensor({alibi_slopes(config.heads)})[:, None, None]"
        apart = "apart = torch.arange(len(x)) - torch.arange(len(x))[:, None]"
        listed += [
            line(slopes, config.heads, 1, 1, stage="biased"),
            line(apart, "n", "n", stage="biased"),
            line(f"biased = {read} - slopes * apart.abs()", *size, stage="biased"),
        ]
        read = "biased"
    return read, listed


def _part(plan: Plan) -> Part:
    return "cross" if plan.place is not None and plan.place.kind == "cross" else "attention"


def _vectors(plan: Plan) -> Iterator[Line]:
    """Queries, keys and values, split into heads, as the scores read them."""
    config, line = plan.config, inside(_part(plan))
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
        yield Line(
            f"    # {shared} heads of queries share a head of keys and values", None, _part(plan)
        )
        for letter, _, name, _, length in rows[1:]:
            repeated = f"{letter} = {letter}.repeat_interleave({shared}, -3)"
            yield line(repeated, heads, length, width, stage=name)


def _mask(plan: Plan, read: str) -> Iterator[Line]:
    """The look-ahead mask: none in an encoder; in an encoder–decoder where it is asked for. read: the scores
    before it."""
    line, heads = inside(_part(plan)), plan.config.heads
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


def rotate(plan: Plan) -> Iterator[Line]:
    """The function `rotate`, where positions turn queries and keys. Raises ValueError for pairs of dimensions
    that have no simple rule."""
    config = plan.config
    if config.rotary_pairs not in _HALVES:
        raise ValueError(
            "it turns its queries and keys in a way that this app cannot write as code"
        )
    halves, joined = _HALVES[config.rotary_pairs]
    width, line = config.turned_width, inside("attention")
    heads, part_turns = config.heads, config.turned_width < config.head_width
    read = "turning" if part_turns else "x"
    yield Line("def rotate(x):", None, "attention")
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
