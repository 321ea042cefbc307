"""The parts of an intervention as a short list, and an intervention brought to the model and the text there.
Pure."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from model.nn.intervention import MASKS, UNCHANGED, Intervention, MaskChoice, masks_of
from model.nn.patches import PatchPart
from model.nn.places import head_label, layer_label
from model.nn.stages import STAGES
from viz.notation.labels import token_label, visible
from viz.notation.numbers import counted, power_of_ten, signed
from viz.notation.words import sentences_of

if TYPE_CHECKING:
    from model.run.model import Model
    from model.trace.trace import Trace

say = sentences_of("state.intervention_words")


MASK_VALUES = (-math.inf, -1e9, -1e20, 0.0)  # what is offered for a masked score
COUNTERFACTUAL = say("counterfactual_model_not")
SENTENCE = 40  # characters of a sentence that a part comes from
LISTED = 4  # members of a set that are named one by one; more are counted


@dataclass(frozen=True)
class InterventionPart:
    """One thing that is changed, in words, and the intervention without it."""

    words: str
    without: Intervention


def parts(intervention: Intervention, tokens: tuple[str, ...] = ()) -> tuple[InterventionPart, ...]:
    """Everything that differs from the unchanged model. tokens: the labels of the text's tokens."""
    return tuple(_parts(intervention, tokens))


def change_in_words(trace: "Trace") -> str:
    """What is changed in a run, in one line, as it begins a title; "" where nothing is."""
    if trace.intervention == UNCHANGED:
        return ""
    tokens = tuple(token_label(token.text) for token in trace.tokens)
    words = ", ".join(part.words for part in parts(trace.intervention, tokens))
    return words[:1].upper() + words[1:]


def mask_value_name(mask_value: float) -> str:
    """A mask value as it stands beside pictures: "−∞", "−1e9", "0"."""
    if math.isinf(mask_value):
        return "−∞"
    text = f"{mask_value:g}"
    return power_of_ten(mask_value, 6) if "e" in text else signed(text)


def _parts(intervention: Intervention, tokens: tuple[str, ...]) -> Iterator[InterventionPart]:
    yield from _of_scores(intervention)
    labels = dict(enumerate(f" {token}" for token in tokens))
    yield from _each(
        intervention,
        "hidden",
        intervention.hidden,
        "tokens hidden",
        lambda at: f"{at}{labels.get(at, '')} hidden",
    )
    yield from _each(
        intervention,
        "blocked",
        intervention.blocked,
        "edges cut",
        lambda edge: "{} cannot see {}".format(*edge),
    )
    if intervention.fill != -math.inf:
        yield InterventionPart(
            f"masked = {mask_value_name(intervention.fill)}", replace(intervention, fill=-math.inf)
        )
    if not intervention.positions:
        yield InterventionPart("positions off", replace(intervention, positions=True))
    for place in sorted({place for place, _ in intervention.ablated}):
        heads = frozenset(head for head in intervention.ablated if head[0] == place)
        heads_off = f"heads of {layer_label(place)} off"
        yield from _each(
            intervention,
            "ablated",
            heads,
            heads_off,
            lambda head: f"{head_label(head)} off",
        )
    yield from _by_hand(intervention)
    if intervention.dropout:
        words = f"dropout {intervention.dropout:g}, seed {intervention.seed}"
        yield InterventionPart(words, replace(intervention, dropout=0.0, seed=0))
    if intervention.only is not None:
        names = ", ".join(map(layer_label, sorted(intervention.only)))
        # Edges of a model with two stacks must name their sub-layers, so they go too.
        yield InterventionPart(
            f"only in {names}", replace(intervention, only=None, blocked=frozenset())
        )


def _of_scores(intervention: Intervention) -> Iterator[InterventionPart]:
    """What changes all scores, and which of them count."""
    if intervention.scale is not None:
        words = (
            "scores not scaled"
            if intervention.scale == 1
            else f"scores × {signed(f'{intervention.scale:g}')}"
        )
        yield InterventionPart(words, replace(intervention, scale=None))
    for stage in STAGES:
        if not stage.of(intervention):
            restored: dict[str, Any] = {stage.field: True}
            yield InterventionPart(stage.without, replace(intervention, **restored))
    if intervention.mask != "model":
        words = MASKS[intervention.mask].change
        yield InterventionPart(words, replace(intervention, mask="model"))
    if intervention.window is not None:
        words = f"window of {counted(intervention.window, 'key')}"
        yield InterventionPart(words, replace(intervention, window=None))


def _by_hand(intervention: Intervention) -> Iterator[InterventionPart]:
    """Weights and numbers of the stream set by hand, and parts of another run."""
    yield from _each(
        intervention,
        "weights",
        intervention.weights,
        say("weights_set_hand"),
        lambda cell: f"{head_label(cell[:2])}: weight {cell[2]} → {cell[3]} = {cell[4]:g}",
    )
    yield from _each(
        intervention,
        "stream",
        intervention.stream,
        say("numbers_stream_set"),
        lambda cell: (
            f"stream before {layer_label(cell[0])}: {cell[1]}, dim {cell[2]} = {cell[3]:g}"
        ),
    )
    if (steering := intervention.steering) is not None:
        words = say("steered", multiple=steering.multiple, place=layer_label(str(steering.place)))
        yield InterventionPart(words, replace(intervention, steering=None))
    if (patch := intervention.patch) is None:
        return
    text = visible(patch.text)
    text = text if len(text) <= SENTENCE else text[: SENTENCE - 1] + "…"
    if len(patch.parts) > LISTED:
        words = f"{len(patch.parts)} parts from “{text}”"
        yield InterventionPart(words, replace(intervention, patch=None))
        return
    for part in sorted(patch.parts):
        rest = patch.parts - {part}
        without = replace(patch, parts=rest) if rest else None
        words = f"{patched_part_name(part)} from “{text}”"
        yield InterventionPart(words, replace(intervention, patch=without))


def patched_part_name(part: PatchPart) -> str:
    """("head", "decoder.1.self", 7) as L1H7, ("stream", "decoder.1.self", 4) as "stream before L1 at 4"."""
    kind, name, index = part
    if kind == "head":
        return head_label((name, index))
    if kind == "weights":
        return f"weights of {head_label((name, index))}"
    what = "stream before" if kind == "stream" else "feed-forward of"
    return f"{what} {layer_label(name)} at {index}"


def _each(
    intervention: Intervention,
    field: str,
    members: frozenset[Any],
    counted: str,
    named: Callable[[Any], str],
) -> Iterator[InterventionPart]:
    """Members of a set field, one by one; all in one part where they are many."""
    whole = getattr(intervention, field)
    if len(members) > LISTED:
        yield InterventionPart(
            f"{len(members)} {counted}", replace(intervention, **{field: whole - members})
        )
        return
    for member in sorted(members):
        yield InterventionPart(named(member), replace(intervention, **{field: whole - {member}}))


def masks_for(model: "Model") -> list[MaskChoice]:
    """The masks that an intervention can set in a model, its own first."""
    windowed = any(layer.window is not None for layer in model.module.attentions())
    return masks_of(model.config.shape, windowed=windowed)


def hides_future(model: "Model", mask: MaskChoice) -> bool:
    """Whether a model, with this mask, reads nothing later."""
    return MASKS[mask].hides_future(own=model.config.masks_future)


def other_mask(model: "Model") -> MaskChoice | None:
    """The mask that shows the future to a model that does not see it, or hides it from one that does; None
    where it takes no such mask."""
    own = hides_future(model, "model")
    return next((mask for mask in masks_for(model) if hides_future(model, mask) != own), None)


def fitting_text(intervention: Intervention, model: "Model", length: int) -> Intervention:
    """An intervention without heads that this model lacks, and tokens and edges that this text lacks.
    Parts of another run go where that is of another model, or its text has another length.

    length: tokens of the text. Edges of a model with two stacks are kept only where the intervention names
    their sub-layers; those past the end are refused by the pass itself, which knows the target.
    """
    heads = {layer.place.name: layer.heads for layer in model.module.attentions()}
    several = len(model.stacks()) > 1
    blocked = intervention.blocked if intervention.only is not None else frozenset()
    if not several:
        blocked = frozenset(edge for edge in intervention.blocked if max(edge) < length)
    patch = intervention.patch
    if patch is not None and (patch.model != model.name or len(model.tokens(patch.text)) != length):
        patch = None
    return replace(
        intervention,
        hidden=frozenset(position for position in intervention.hidden if position < length),
        blocked=blocked,
        ablated=frozenset(
            (name, head) for name, head in intervention.ablated if head < heads.get(name, 0)
        ),
        weights=frozenset(
            cell
            for cell in intervention.weights
            if cell[1] < heads.get(cell[0], 0) and (several or max(cell[2:4]) < length)
        ),
        stream=frozenset(
            cell
            for cell in intervention.stream
            if cell[0] in heads and (several or cell[1] < length)
        ),
        patch=patch,
        steering=None,  # a direction belongs to a run, not to a link
    )
