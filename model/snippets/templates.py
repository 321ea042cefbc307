"""Fills the templates of stages.toml: the lines of each stage for one layer's sizes and facts."""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from model.nn.norms import NORMS
from model.nn.stages import SCORE_STAGES, STAGES
from model.snippets.snippet import (
    LATER,
    STYLES,
    CodeStage,
    Facts,
    LaterStage,
    Snippet,
    SnippetLine,
    Style,
    Vector,
    shape,
)

LETTERS: Mapping[CodeStage, str] = {"query": "q", "key": "k", "value": "v"}
# What lines may be given, in the order in which a page lists it.
_GIVEN = (
    "x", "output", "w", "angles", "scores", "scaled", *LATER, "weights",
    "q", "k", "v", "mask", *(stage.field for stage in STAGES), "gamma", "beta", "table",
)  # fmt: skip
_NAME = re.compile(r"(?<![\w.@])[a-z_]\w*(?![\w=])")
_ONE_ROW = "One head and one query: the loops that all heads and queries run side by side."


@lru_cache(maxsize=2)
def templates(file: str) -> Mapping[str, Mapping[Style, str]]:
    """The templates of a file beside this one, by stage and style."""
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


def filled_in(
    template: str,
    slots: Mapping[str, object],
    words: Collection[str],
    result: str,
    chain: Mapping[CodeStage, Snippet] | None = None,
) -> Snippet:
    """The snippet of a template.

    Args:
        template: lines with {slots}, some of them behind ?words.
        slots: what stands in them.
        words: those that hold.
        result: the number of the chosen cell in code.
        chain: the snippets of the stages before, whose lines come first where these lines read their results.
    """
    lines, remarks = list[SnippetLine](), list[str]()
    for line in template.strip().splitlines():
        text = line
        if line.startswith("?"):
            asked, _, text = line[1:].partition(" ")
            if not all(
                (word.lstrip("!") in words) != (word[0] == "!") for word in asked.split(",")
            ):
                continue
        text = text.format_map(slots)
        if text.startswith("# "):
            remarks.append(text[2:])
        else:
            code, _, beside = text.partition("  # ")
            lines.append(SnippetLine(code, beside))
    read = _read_by(lines)
    given = tuple(name for name in _GIVEN if name in read)
    after = dict[CodeStage, None]()
    for stage in chain or {}:
        if stage in given:
            after |= dict.fromkeys((*(chain or {})[stage].after, stage))
    return Snippet(tuple(lines), given, result, tuple(after), " ".join(remarks))


def _read_by(lines: Sequence[SnippetLine]) -> set[str]:
    """The names that lines read before they assign them."""
    read, assigned = set[str](), set[str]()
    for line in lines:
        bare = re.sub(r'"[^"]*"', "", line.code)
        left, equals, right = bare.partition(" = ")
        own = re.findall(r"\bfor (\w+) in", bare)  # the variable of a loop or a list
        read |= set(_NAME.findall(right if equals else bare)) - assigned - {*own}
        assigned |= set(_NAME.findall(left)) if equals else set()
    return read


def key_head(facts: Facts) -> str:
    """The index of the head of keys and values that the chosen head reads."""
    return "@head@" if facts.shared == 1 else f"@head@ // {facts.shared}"


def stage_snippets(
    facts: Facts, stages: Sequence[CodeStage]
) -> dict[CodeStage, Mapping[Style, Snippet]]:
    """The lines of attention's stages, in their order, in every style. Loops follow on plain tensors."""
    made: dict[Style, dict[CodeStage, Snippet]] = {style: {} for style in STYLES}
    written, slots, words = templates("stages.toml"), _slots(facts), _words(facts)
    later: tuple[LaterStage | Literal["weights"], ...] = (*facts.later, "weights")
    before: dict[CodeStage, CodeStage] = {stage: facts.before(stage) for stage in later}
    for stage in stages:
        slots["before"] = before.get(stage, "")
        last = "@dimension@" if stage == "output" else "@key@"
        for style in STYLES:
            result = f"{stage}[{last}]" if style == "loops" else f"{stage}[@head@, @query@, {last}]"
            chain = made["plain" if style == "loops" else style]
            template = written[stage].get(style, written[stage]["plain"])
            made[style][stage] = filled_in(template, slots, words, result, chain)
    return {stage: {style: made[style][stage] for style in STYLES} for stage in stages}


def _words(facts: Facts) -> set[str]:
    """The words of the templates that hold for a layer."""
    later = facts.before("masked") != "scaled"
    holds = {
        "shared": facts.shared > 1,
        "unscaled": facts.scale == 1,
        "masks": facts.mask != "none",
        "own": facts.mask == "own",
        "future": facts.mask == "future",
        "fills": facts.fills,
        "empty": facts.empty_rows,
        "drops": bool(facts.dropout),
        "negative": facts.scale <= 0,
        "later": later,
        "extended": bool(facts.needs) or later,
    }
    words = {word for word, is_so in holds.items() if is_so} | {*facts.needs}
    if not words & {"extended", "fills"}:
        # nn.MultiheadAttention, else the fused kernel with values that are the identity's rows
        plain_heads = facts.shared == 1 and facts.width == facts.value_width
        words |= {"kernel", "module" if plain_heads and facts.divides_by_root else "identity"}
    if not words & {"extended", "fills", "drops"}:
        words.add("fused")
    return words


def _slots(facts: Facts) -> dict[str, object]:
    """What stands in the slots of the templates for a layer."""
    index = "@head@, @query@, j" if len(facts.mask_shape) == 3 else "@query@, j"
    mask = ", attn_mask=mask" if facts.mask == "own" else ""
    if facts.mask == "future":  # the kernel multiplies its own look-ahead mask by the scale
        mask = ", is_causal=True" if facts.scale > 0 else ", attn_mask=~future"
    return {
        **{name: getattr(facts, name) for name in ("heads", "groups", "shared", "queries", "keys")},
        **{
            name: getattr(facts, name)
            for name in ("width", "value_width", "scaling", "fill", "seed")
        },
        "one_row": _ONE_ROW,
        "cells": facts.all_cells,
        "q": shape(facts.heads, facts.queries, facts.width),
        "k": shape(facts.groups, facts.keys, facts.width),
        "v": shape(facts.groups, facts.keys, facts.value_width),
        "longer": shape(facts.heads, facts.queries, facts.keys + 1),
        "context": shape(facts.heads, facts.queries, facts.value_width),
        "all_width": facts.heads * facts.width,
        "key_head": key_head(facts),
        **{
            slot: text
            for stage in SCORE_STAGES
            for slot, text in stage.slots(facts.needs.get(stage.field)).items()
        },
        "hidden": "future" if facts.mask == "future" else "~mask",
        "visible": "j <= @query@" if facts.mask == "future" else f"mask[{index}]",
        "mask_sizes": ", ".join(map(str, facts.mask_shape)),
        "zero": ".nan_to_num()" if facts.empty_rows else "",
        "dropout": repr(facts.dropout),
        "dropped": "dropped" if facts.dropout else "weights",
        "kernel_mask": mask,
        "kernel_scale": "" if facts.divides_by_root else f", scale={facts.scale!r}",
    }


def vectors(facts: Facts, vector: Vector, stage: CodeStage) -> Mapping[Style, Snippet]:
    """The lines of queries, keys or values in their styles: how they come of x.

    Args:
        facts: of the layer.
        vector: how these vectors are made.
        stage: "query", "key" or "value".
    """
    letter, norm = LETTERS[stage], vector.norm
    heads = facts.heads if stage == "query" else facts.groups
    width = facts.value_width if stage == "value" else facts.width
    token = "@query@" if stage == "query" else "@key@"
    head = "@head@" if stage == "query" else key_head(facts)
    halves, part = vector.pairs == "halves", vector.turned < facts.width
    read = "turning" if part else letter
    joined = "torch.cat(turned, -1)" if halves else "torch.stack(turned, -1).flatten(-2)"
    bias, beta = f'w["{stage}.bias"]', f'w["{stage}_norm.beta"]'
    slots: dict[str, object] = {
        "letter": letter,
        "side": stage,
        "x": shape(vector.rows, vector.d_model),
        "made": shape(heads, vector.rows, width),
        "rows": vector.rows,
        "d_model": vector.d_model,
        "own_heads": heads,
        "own_width": width,
        "wide": heads * width,
        "added": f" + {bias}" if vector.bias else "",
        "bias": f", {bias}" if vector.bias else "",
        "norm": NORMS[norm.kind].in_torch if norm else "",
        "epsilon": f"{norm.epsilon:.6g}" if norm else "",
        "gamma": f'w["{stage}_norm.gamma"]',
        "beta": f" + {beta}" if norm and norm.shifts else "",
        "turned": vector.turned,
        "half": shape(vector.rows, vector.turned // 2),
        "pairs": f"{read}.chunk(2, -1)" if halves else f"{read}[..., 0::2], {read}[..., 1::2]",
        "joined": f"torch.cat([{joined}, still], -1)" if part else joined,
    }
    holds = {
        "normed": norm is not None,
        "turns": vector.turned > 0,
        "part": vector.turned > 0 and part,
    }
    words = {word for word, is_so in holds.items() if is_so} | ({norm.kind} if norm else set())
    result = f"{letter}[{head}, {token}, @dimension@]"
    written = templates("stages.toml")["vectors"]
    return {style: filled_in(lines, slots, words, result) for style, lines in written.items()}
