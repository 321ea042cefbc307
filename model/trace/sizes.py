"""The sizes of a model, read off its recorded run where its file does not say them."""

from model.nn.config import Shape, Stack, TransformerConfig
from model.nn.norms import NormPlace
from model.nn.places import Place
from model.nn.positions import PositionKind
from model.nn.stages import in_config
from model.trace.trace import Trace
from model.trace.unproven import proven, proven_states


def sizes_of(trace: Trace) -> TransformerConfig:
    """What the run says of its model. Choices that leave nothing behind in a run have their defaults."""
    if trace.config is not None:
        return trace.config
    attention = trace.attention[0]
    heads = max(one.heads for one in trace.attention)
    groups, width = len(attention.vectors[1]), attention.query.shape[-1]
    stacks = trace.stacks
    shape: Shape = "encoder-decoder" if len(stacks) > 1 else stacks[0]
    norms, records = proven(trace.norms), proven(trace.feed_forward)
    rotary = trace.angles is not None and width % 2 == 0
    return TransformerConfig(
        shape,
        _words(trace),
        max(len(trace.tokens), len(trace.target_tokens)),
        _width(trace),
        heads,
        encoder_layers=_layers(trace, "encoder"),
        decoder_layers=_layers(trace, "decoder"),
        d_mlp=records[0].before.shape[1] if records else 0,
        norm=norms[0].kind if norms else TransformerConfig.norm,
        norm_place=_norm_place(trace),
        positions=_positions(trace, rotary=rotary),
        key_heads=groups if heads % groups == 0 else 0,
        head_size=width,
        **in_config(trace.attention),
    )


def _layers(trace: Trace, stack: Stack) -> int:
    return max((one.layer + 1 for one in trace.attention if one.stack == stack), default=0)


def _words(trace: Trace) -> int:
    """Rows of the vocabulary: as many as there are logits, or as the ids need."""
    if trace.prediction is not None:
        return trace.prediction.vocabulary
    return 1 + max(token.id for token in (*trace.tokens, *trace.target_tokens))


def _width(trace: Trace) -> int:
    for states in proven_states(trace.residual).values():
        return states[0].shape[1]
    heads, _, width = trace.attention[0].output.shape
    return heads * width


def _norm_place(trace: Trace) -> NormPlace:
    """Norms on the stream itself leave none after the last layer."""
    places = [(norm.name, Place.named(norm.name)) for norm in proven(trace.norms)]
    if any(name == place.after for name, place in places):
        reads = any(name == place.norm and place.kind == "self" for name, place in places)
        return "both" if reads else "after"
    return "pre" if not places or any(place.kind == "final" for _, place in places) else "post"


def _positions(trace: Trace, *, rotary: bool) -> PositionKind:
    if rotary:
        return "rotary"
    if any("positions" in parts for parts in proven_states(trace.summands).values()):
        return "learned"
    return "disentangled" if any(one.bias is not None for one in trace.attention) else "none"
