"""A sentence as the site has it: its run, and the run with each switch turned, as the messages that the
explorer draws from. They are those of the app, layer for layer.

A run is what the picture asks for (js/runs.js): `messageOf` gives one from these records, or computes it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from model.analysis.tokens.prediction import expectation
from model.nn.intervention import Intervention
from model.nn.places import head_label
from model.trace.trace import Trace
from viz.explorer.heads import THEME, all_heads
from viz.explorer.hero import DECIMALS, hero
from viz.explorer.packing import Json
from viz.explorer.selection import Detail
from viz.notation.labels import token_label
from viz.notation.numbers import fixed
from viz.notebook.run import Run
from viz.questions.claims import claims
from viz.site.model.parts import parts
from viz.state.intervention_words import change_in_words, other_mask
from viz.state.link import View
from viz.state.presets import SentenceExample
from viz.views.home.outcome import LABEL, LISTED, cosine, job_of

if TYPE_CHECKING:
    from model.run.model import Model

UNCHANGED = ""  # the name of the run in which nothing is changed
_NAMED_HEADS = 3  # heads that a switch names one by one


@dataclass(frozen=True)
class SiteSwitch:
    """One thing that a reader turns. on: whether it is on in the unchanged run."""

    name: str
    label: str
    intervention: Intervention
    on: bool = True


@dataclass(frozen=True, eq=False)
class Recording:
    """A sentence with its runs. view: complete, with a head and a cell that exist. runs: by the switch that
    is turned; UNCHANGED for none. shared: arrays that all runs of the model have, by name. jobs: as `jobs_of`
    has them."""

    name: str
    example: SentenceExample
    view: View
    switches: tuple[SiteSwitch, ...]
    runs: dict[str, Json]
    shared: dict[str, np.ndarray]
    jobs: dict[str, list[str]]

    def data(self, switch: str = UNCHANGED) -> str:
        """The name of the block of data that has the run of a switch."""
        return f"run-{self.name}.{switch}".rstrip(".")


@dataclass(frozen=True, eq=False)
class SiteModel:
    """A model that runs in the browser. parts: as `viz.site.model.parts` makes them. jobs: as `jobs_of` has
    them."""

    name: str
    switches: tuple[SiteSwitch, ...]
    families: Sequence[dict[str, Any]]
    parts: Json
    jobs: dict[str, list[str]]


def site_model(model: "Model") -> SiteModel:
    """What a site has of a model that runs in the browser. Raises ValueError for one that does not."""
    made = parts(model)
    heads: Any = made["heads"]
    families: Any = heads["families"]
    counts = {layer["name"]: family["heads"] for family in families for layer in family["layers"]}
    return SiteModel(model.name, tuple(switches(model)), families, made, jobs_of(model, counts))


def jobs_of(model: "Model", heads: Mapping[str, int]) -> dict[str, list[str]]:
    """What each head of these layers does, with its evidence; only of layers of which anything is known."""
    said = {
        place: [job_of(model, (place, head)) for head in range(count)]
        for place, count in heads.items()
    }
    return {place: words for place, words in said.items() if any(words)}


def slug(text: str, used: Sequence[str] = ()) -> str:
    """A name for files and links: letters of ASCII, digits and "-". Another one than those that are used."""
    made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "sentence"
    count = next(
        n for n in range(1, len(used) + 2) if (made if n == 1 else f"{made}-{n}") not in used
    )
    return made if count == 1 else f"{made}-{count}"


def switches(model: "Model", without: frozenset[tuple[str, int]] = frozenset()) -> list[SiteSwitch]:
    """What a reader can turn in a model: mask, scaling, positions, and heads that an example leaves out."""
    made = []
    if (other := other_mask(model)) is not None:
        lifted = Intervention(mask=other)
        made.append(SiteSwitch("mask", "Hide the future", lifted, on=model.config.masks_future))
    made.append(SiteSwitch("scale", "Divide scores by √d", Intervention(scale=1.0)))
    if "positions" not in model.unproven:
        made.append(SiteSwitch("positions", "Positions", Intervention(positions=False)))
    if without:
        names = [head_label(head) for head in sorted(without)]
        few = ", ".join(names) if len(names) <= _NAMED_HEADS else f"{names[0]} to {names[-1]}"
        label = f"Head {few}" if len(names) == 1 else f"Heads {few}"
        made.append(SiteSwitch("heads", label, Intervention(ablated=without)))
    return made


def recording(
    example: SentenceExample, model: "Model", name: str, examples: Sequence[SentenceExample]
) -> Recording:
    """Runs a sentence unchanged and with each switch turned, the chosen head's among them. A switch that the
    model refuses is left out.

    examples: those of which some may speak of the same run; their words are shown beside their heads.
    Raises ValueError where the sentence cannot be read, where the head or cell of the example is none of the
    run's, and where a run is too large.
    """
    trace = model.trace(example.view.text)
    view = _complete(example.view, trace)
    named = (example.view.text, example.view.model)
    spoken = [
        replace(one, view=_complete(one.view, trace))
        for one in examples
        if one.look_for and (one.view.text, one.view.model) == named
    ]
    runs = {UNCHANGED: recorded_run(Run(trace, None, model), name, view, spoken)}
    offered = []
    head = view.place, view.head
    own = SiteSwitch(
        f"{view.place}-{view.head}",
        f"Use head {head_label(head)}",
        Intervention(ablated=frozenset({head})),
    )
    for switch in (*switches(model, example.without), own):
        try:
            changed = model.trace(example.view.text, intervention=switch.intervention)
        except ValueError:
            continue
        offered.append(switch)
        run = Run(changed, trace, model, change_in_words(changed))
        runs[switch.name] = recorded_run(run, f"{name} {switch.name}", view, spoken)
    shared = _take_shared(runs[UNCHANGED])
    jobs = jobs_of(model, {one.name: one.heads for one in trace.attention})
    shown = replace(example, view=view)
    return Recording(name, shown, view, tuple(offered), runs, shared, jobs)


def _complete(view: View, trace: Trace) -> View:
    """The view with a place and a cell: those that it names, or the last layer and the last token's largest
    weight."""
    attention = trace.find(view.place or trace.attention[-1].name)
    heads, queries, keys = attention.sizes
    named = replace(view, place=attention.name, query=queries - 1 if view.query < 0 else view.query)
    for what, number, count in (("head", view.head, heads), ("query", named.query, queries)):
        if not 0 <= number < count:
            raise ValueError(
                f"“{view.text[:60]}”: {attention.name} has {what} 0 to {count - 1}, not {number}."
            )
    row = attention.weights(view.head)[named.query]
    if view.key >= keys:
        raise ValueError(
            f"“{view.text[:60]}”: {attention.name} has key 0 to {keys - 1}, not {view.key}."
        )
    return replace(named, key=int(row.argmax()) if view.key < 0 else view.key)


def recorded_run(run: Run, name: str, view: View, spoken: Sequence[SentenceExample]) -> Json:
    """All that a picture and what stands beside it are drawn from. spoken: examples whose words are shown.
    Raises ValueError for a run that is too large."""
    trace, baseline = run.trace, run.baseline
    messages = run.messages(checked=True)
    if not messages:
        raise ValueError(
            f"“{view.text[:60]}” in {view.model} has too many numbers for a page of a site. "
            "Take a shorter text or a smaller model."
        )
    said = claims(view, baseline or trace, trace, trace.intervention, spoken)
    layers = [_whole(one) | {"claims": [asdict(claim) for claim in said]} for one in messages]
    families = all_heads(
        trace, trace.intervention.ablated, mapped=[one.name for one in trace.attention]
    )
    return {
        "run": name,
        "layers": layers,
        "heads": {"run": name, "docked": True, "families": families, "theme": THEME},
        "tokens": [[token_label(token.text), token.id] for token in trace.tokens],
        "targets": [[token_label(token.text), token.id] for token in trace.target_tokens],
        "outcome": {detail: _outcome(run, detail) for detail in DECIMALS},
    }


def _whole(message: Json) -> Json:
    """A message without the stages whose numbers it has not: nobody could send them later."""
    layer: Any = message["layer"]
    groups = {name: group for name, group in layer["around"].items() if group["numbers"]}
    shown: Any = message["stages"]
    stages = [stage for stage in shown if not stage["group"] or stage["group"] in groups]
    stages[0] = stages[0] | {"step": ""}
    return message | {"layer": layer | {"around": groups}, "stages": stages}


def _outcome(run: Run, detail: Detail) -> Json:
    """The likeliest next tokens and the loss, with those of the unchanged run; of an encoder how far its
    vector of the sentence has moved."""
    trace, baseline, model = run.trace, run.baseline, run.model
    after = trace.prediction
    if after is None or model is None:
        return {"cosine": None if baseline is None else cosine(baseline, trace)}
    beside = hero(trace.attention[-1], trace, baseline, detail=detail)
    before = None if baseline is None else baseline.prediction
    likely = expectation((before or after).after(-1), after.after(-1), LISTED)
    tokens = [token_label(token.text, LABEL) for token in model.tokenizer.named(likely.ids)]
    rows = [
        {"token": token, "before": float(old), "after": float(new)}
        | {"was": fixed(old, beside.decimals), "now": fixed(new, beside.decimals)}
        for token, old, new in zip(tokens, likely.before, likely.after, strict=True)
    ]
    last = token_label(trace.tokens_of("decoder")[-1].text)
    return {"last": last, "rows": rows, "changed": before is not None, "loss": beside.loss}


def _take_shared(run: Json) -> dict[str, np.ndarray]:
    """Takes the model's own weights out of a run: {layer: W_O}. Its other sentences have the same. Without
    them the numbers of their stages have not arrived (`complete` of js/runs.js)."""
    taken = {}
    layers: Any = run["layers"]
    for message in layers:
        layer = message["layer"]
        if group := layer["around"].get("merged"):
            own = dict(group["numbers"])
            taken[layer["name"]] = own.pop("weight")
            layer["around"] = layer["around"] | {"merged": group | {"numbers": None, "own": own}}
    return taken
