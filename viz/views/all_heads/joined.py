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
from viz.notation.numbers import led_by
from viz.notation.words import sentences_of
from viz.shell.controls import LISTED
from viz.shell.panel import Caption, Check, Code, Formula, Panel, Part, Table
from viz.state.look import Look
from viz.state.session import current
from viz.views.all_heads.choice import head_names

say = sentences_of("all_heads.joined")

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
            Caption(say("w_o_changed_nothing")),
            Formula(concatenation(look.model.config)),
            Caption(_shapes(look, own, groups)),
        ],
        check=Check(
            say(
                "check_heads_outputs",
                choice=", plus its bias" if own.bias.any() else "",
                check=own.check,
            ),
            own.check,
        ),
        code=_code(look, own, 0 if whole else token),
        table=Table(columns, index="dimension"),
    )


def _look(look: Look, together: Merged, *, by_identity: bool, whole: bool) -> str:
    heads, _, width = together.outputs.shape
    names = head_names(look, [(look.place, head) for head in range(heads)])
    lengths = np.linalg.norm(together.written, axis=-1).mean(-1).astype(np.float64)
    longest, _ = led_by(names, lengths, decimals=2)
    framed = "" if whole else say("frame_around_chosen", names=names[look.head])
    if by_identity:
        apart = np.linalg.norm(together.total - together.recorded, axis=-1).mean()
        return say(
            "w_o_identity_head",
            width=width,
            apart=apart,
            mean_norm=np.linalg.norm(together.recorded, axis=-1).mean(),
        )
    return say(
        "side_side_heads",
        heads=heads,
        width=width,
        bias=len(together.bias),
        longest=longest,
        most_lengths=lengths.max(),
        framed=framed,
    )


def _shapes(look: Look, together: Merged, groups: int) -> str:
    heads, _, width = together.outputs.shape
    words = say(
        "w_v_head_turns_numbers",
        d_model=look.model.config.d_model,
        width=width,
        heads=heads * width,
    )
    if groups < heads:
        words += say("heads_share_heads", heads=heads, groups=groups)
    return words


def _code(look: Look, together: Merged, token: int) -> Code:
    attention, has_bias = look.attention, bool(together.bias.any())
    heads, queries, width = attention.output.shape
    is_saved = saves(look.model, f"{within_weights(attention)}output.weight")
    return Code(
        layers.concatenation(attention, len(together.bias), bias=has_bias),
        given={
            "output": f"({heads}, {queries}, {width}): of each head",
            "w": say("layer_weights_name"),
        },
        cell={"query": token, "dimension": 0},
        value=float(together.total[0, 0]),
        reads=(*output_reads(attention), map_reads(look.model, attention)) if is_saved else None,
    )
