"""How a layer's queries, keys and values come of the stream, for the code beside their formulas."""

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING
from weakref import ref

from cachetools import LRUCache, cached

from model.analysis.attribution.head_maps import CLOSE, Side, where_read
from model.code.around import around_heads
from model.code.check import vectors_gap, within_weights
from model.code.script import stem
from model.nn.intervention import Intervention
from model.snippets.script import TRACE_FILE
from model.snippets.snippet import Around, CodeStage, NormFacts, Origin, Vector
from model.system.remote import asked
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

_KEPT = 256  # layers: of a class, each with its own sentence and two runs of it
_CHECKED = 32  # tokens: the maps are the same for each
_REFUSED = "How this model makes its queries, keys and values cannot be written as code: {}."


@cached(
    LRUCache(_KEPT),
    key=lambda model, trace, attention: ref(attention),
    lock=Lock(),
)
@asked
def origin(model: "Model", trace: Trace, attention: Attention) -> Origin:
    """What the code of a layer needs beside its record, checked with the layer's own first tokens."""
    intervention = trace.intervention
    if not intervention.applies(attention.name):
        intervention = Intervention()
    patch = trace.intervention.patch
    if patch is not None and patch.touches(attention.name):
        return Origin(
            intervention,
            refusal="Queries and keys of this layer were taken from another sentence, which this code does "
            "not read.",
        )
    around: Mapping[CodeStage, Around] = around_heads(model, trace, attention)
    try:
        weights = model.module.named_weights()
        around = around_heads(model, trace, attention, weights)
        gap = vectors_gap(model, trace, attention, weights, trace.angles, _CHECKED)
        if not gap <= CLOSE:
            raise ValueError("the weights do not give its numbers in such a way")
    except ValueError as refusal:
        return Origin(
            intervention, around=around, refusal=_REFUSED.format(str(refusal).rstrip("."))
        )
    within = within_weights(attention)
    biased = {name for name in ("query", "key", "value") if f"{within}{name}.bias" in weights}
    stages: tuple[CodeStage, ...] = ("query", "key", "value")
    made = {stage: _vector(model, trace, attention, stage, stage in biased) for stage in stages}
    return Origin(intervention, made, around)


def _vector(
    model: "Model", trace: Trace, attention: Attention, stage: CodeStage, bias: bool
) -> Vector:
    config, projection = model.config, attention.projection
    side: Side = "query" if stage == "query" else "key"
    compared = stage != "value"
    turned = compared and projection.turned and trace.angles is not None
    norm = NormFacts(config.norm, config.shifts, config.epsilon)
    lines = [
        *_reads_x(where_read(model, trace, attention, side)),
        f'w = load("{stem(model)}.safetensors", "{within_weights(attention)}")',
    ]
    if turned:
        lines.append(f'angles = load("{TRACE_FILE}", "angles")[""]')
    return Vector(
        read=tuple(lines),
        rows=len(trace.queries_of(attention) if side == "query" else trace.keys_of(attention)),
        d_model=config.d_model,
        bias=bias,
        norm=norm if compared and projection.normed else None,
        turned=config.rotary_dim if turned else 0,
        pairs=config.rotary_pairs,
    )


def _reads_x(where: NormRecord | tuple[str, int]) -> list[str]:
    """The lines that read what the map to queries, or to keys and values, reads."""
    if not isinstance(where, NormRecord):
        stack, state = where
        return [f'x = load("{TRACE_FILE}", "states/{stack}/{state}")[""]']
    return [
        f't = load("{TRACE_FILE}", "norms/{where.name}/")',
        'x = (t["input"] - t["mean"][:, None]) * t["inverse_deviation"][:, None] * t["gamma"] + t["beta"]',
    ]
