"""How the heads of a layer are joined: their outputs side by side, times W_O."""

import numpy as np

from model.analysis.heads.contributions import (
    Merged,
    merged,
)
from model.code.around import map_reads, output_reads
from model.code.check import within_weights
from model.code.script import saves
from model.snippets import layers
from viz.elements.one_of import one_listed
from viz.figures.vectors import merging, merging_of_tokens
from viz.notation.head_formulas import concatenation
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.numbers import difference, led_by
from viz.shell.controls import LISTED
from viz.shell.panel import Caption, Check, Code, Formula, Panel, Part, Table
from viz.state.look import Look
from viz.state.session import current
from viz.views.all_heads.choice import name_of

OWN, IDENTITY = "The model's", "The identity"
FITTING = 24  # tokens of a sentence that is drawn whole
WHOLE = "The whole sentence"


def through_output(look: Look) -> Panel:
    """All heads of a layer put together: their outputs side by side, times W_O, and what the layer writes. Of
    one token, or of the whole sentence where it fits."""
    queries, _ = look.labels
    names = numbered_labels(queries, LISTED)
    names += [WHOLE] if len(queries) <= FITTING else []
    token = one_listed(
        "Token",
        names,
        f"all-heads-merged-{len(names)}",
        first=min(current().query, len(queries) - 1),
    )
    matrix = (OWN, IDENTITY)[one_listed("W_O", (OWN, IDENTITY), "all-heads-w-o")]
    whole = token == len(queries)
    rows = slice(None) if whole else slice(token, token + 1)
    own = together = merged(look.model, look.trace, look.place, rows)
    notes: list[Part] = []
    if matrix == IDENTITY:
        try:
            together = own.by_identity()
        except ValueError as refusal:
            notes.append(plain(str(refusal)))
    groups = look.attention.vectors[1].shape[0]
    if whole:
        figure = merging_of_tokens(together.outputs, together.total, tokens=queries, groups=groups)
        columns = dict(zip(names, together.total, strict=False))
    else:
        bias = {"+ bias": together.bias} if together.bias.any() else {}
        sums = bias | {"= sum": together.total[0], "recorded": together.recorded[0]}
        figure = merging(
            together.outputs[:, 0],
            together.written[:, 0],
            sums,
            groups=groups,
            chosen=look.head,
        )
        columns = {f"head {head}": written[0] for head, written in enumerate(together.written)}
        columns |= {"bias": together.bias, "sum": together.total[0], "recorded": own.recorded[0]}
    return Panel(
        "all-heads-merged",
        look_for=_look(look, together, by_identity=together is not own, whole=whole),
        picture=figure,
        chosen=f"{look.place}-{look.head}",
        beside=[
            *notes,
            Caption(
                "What if W_O changed nothing? As the identity it leaves the numbers of each head in their "
                "places."
            ),
            Formula(concatenation(look.model.config)),
            Caption(_shapes(look, own, groups)),
        ],
        check=Check(
            "Check: the heads' outputs side by side, times "
            f"W_O{', plus its bias' if own.bias.any() else ''}, differ from what this sub-layer "
            f"added to the stream by at most {difference(own.check)}.",
            own.check,
        ),
        code=_code(look, own, 0 if whole else token),
        table=Table(columns, index="dimension"),
    )


def _look(look: Look, together: Merged, *, by_identity: bool, whole: bool) -> str:
    heads, _, width = together.outputs.shape
    names = [name_of(look, (look.place, head)) for head in range(heads)]
    lengths = np.linalg.norm(together.written, axis=-1).mean(-1).astype(np.float64)
    longest, _ = led_by(names, lengths, decimals=2)
    framed = "" if whole else f" The frame is around the chosen head, {names[look.head]}."
    if by_identity:
        apart = np.linalg.norm(together.total - together.recorded, axis=-1).mean()
        return (
            f"As if W_O were the identity, each head would write to its own {width} numbers only, and the "
            f"sum would be the outputs side by side. It lies {apart:.2f} from what the layer really wrote, "
            f"whose length is {np.linalg.norm(together.recorded, axis=-1).mean():.2f}."
        )
    return (
        f"Side by side each of the {heads} heads has {width} places of its own. Through W_O every head "
        f"writes to all {len(together.bias)} numbers of the stream, and their sum is what the layer writes. "
        f"The longest vector here comes from {longest}: length {lengths.max():.2f}.{framed}"
    )


def _shapes(look: Look, together: Merged, groups: int) -> str:
    heads, _, width = together.outputs.shape
    words = (
        f"W_V of a head turns {look.model.config.d_model} numbers into {width}, so no identity can take its "
        f"place. W_O has {heads * width} rows, {width} for each head."
    )
    if groups < heads:
        words += (
            f" The {heads} heads share {groups} heads of keys and values: heads of one colour mix the same "
            "values, each with its own weights and its own rows of W_O."
        )
    return words


def _code(look: Look, together: Merged, token: int) -> Code:
    attention, has_bias = look.attention, bool(together.bias.any())
    heads, queries, width = attention.output.shape
    is_saved = saves(look.model, f"{within_weights(attention)}output.weight")
    return Code(
        layers.concatenation(attention, len(together.bias), bias=has_bias),
        given={
            "output": f"({heads}, {queries}, {width}): of each head",
            "w": "(the layer's weights by name)",
        },
        cell={"query": token, "dimension": 0},
        value=float(together.total[0, 0]),
        reads=(*output_reads(attention), map_reads(look.model, attention)) if is_saved else None,
    )
