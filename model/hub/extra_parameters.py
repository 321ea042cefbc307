"""Parameters of a hub model that do not follow from the sizes in its config."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from torch import nn

from model.hub.parts import Anatomy, StackPart
from model.nn.config import TransformerConfig

IN_SCORES = ("rel_embeddings", "pos_key_proj", "pos_query_proj", "encoder.LayerNorm.")  # DeBERTa
ROWS_TO_SPARE = "Positions without a token"  # rows in front of the first one, or past the context


def extra_parameters(body: Any, anatomy: Anatomy, config: TransformerConfig) -> dict[str, int]:
    """By part: the number of parameters that `parameter_parts` does not count from the config."""
    found: Counter[str] = Counter()
    known: set[int] = set()

    def take(weights: Iterable[nn.Parameter], part: str = "") -> None:
        for weight in weights:
            if id(weight) not in known:
                known.add(id(weight))
                found[part] += weight.numel()

    first, *others = anatomy.stacks
    tables: set[str] = set()
    for name, weight in body.named_parameters():
        if "relative_attention_bias" in name:
            stack_name = name.split(".")[0]
            later = "Biases of distances of later layers"
            if config.positions != "buckets":  # beside learned positions (MPNet)
                take([weight], "Biases of distances")
            take([weight], later if stack_name in tables else "")  # the config counts one a stack
            tables.add(stack_name)
        elif any(word in name for word in IN_SCORES):
            take([weight], "Positions in the scores")
    for stack in anatomy.stacks:
        take(weight for block in stack.blocks for weight in block.module.parameters())
    for part in (first.tokens, first.segments, _norm(first)):
        take(_of(part))
    if config.norm_place != "post":
        for stack in anatomy.stacks:
            take(_of(stack.final_norm.module if stack.final_norm else None))
    output = body.get_output_embeddings()
    if output is not None:
        take(weight for name, weight in output.named_parameters() if name == "weight")
        take(_of(output), "Bias of the output")
    for stack in anatomy.stacks:
        found.update(_positions(stack, stack is first, config, known))
    for stack in others:
        take(_of(stack.tokens), f"Token embedding of the {stack.stack}")
        take(_of(stack.segments), f"Segment embedding of the {stack.stack}")
        take(_of(_norm(stack)), f"Norm after the embedding of the {stack.stack}")
    for name, weight in body.named_parameters():
        take([weight], f"{name.rpartition('.')[0]}, not used here")
    del found[""]
    return dict(found)


def _positions(
    stack: StackPart, is_first: bool, config: TransformerConfig, known: set[int]
) -> dict[str, int]:
    """Parameters of a stack's position table that do not follow from the sizes."""
    found = {}
    for table in _of(stack.positions):
        if id(table) in known:
            continue
        known.add(id(table))
        rows, width = table.shape
        used = min(config.n_ctx, rows)
        learned = config.positions == "learned"
        if not (is_first and learned):
            kind = "Position embedding" if learned else "Table of sines"
            found[f"{kind} of the {stack.stack}"] = used * width
        if rows > used:
            found[ROWS_TO_SPARE] = (rows - used) * width
    return found


def _norm(stack: StackPart) -> nn.Module | None:
    return None if stack.embedding_norm is None else stack.embedding_norm.module


def _of(part: nn.Module | None) -> Iterable[nn.Parameter]:
    return () if part is None else part.parameters()
