"""What a metric owes to each head, or to another part of a run: passes in which one part's output is
replaced, by nothing, by what it gives on other prompts, or by what it gives on the corrupt text.

Sources: Wang et al. 2022, "Interpretability in the Wild" (mean ablation, path patching); Chan et al. 2022,
"Causal Scrubbing" (resampling); Vig et al. 2020, "Causal Mediation Analysis" (patching). Axes: R passes of a
batch, H heads, T tokens, D width of a head.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.patching import (
    READS,
    FeedForwards,
    PatchedRuns,
    PathInto,
    PathReads,
    Spot,
    What,
)
from model.many.metrics import Metric, for_prompt, named, value_of
from model.many.progress import PromptProgress, counted
from model.many.prompts import GivenPrompts, PlacedPrompt, placed, prompts_of
from model.many.traces import trace_all
from model.nn.intervention import UNCHANGED, Intervention
from model.nn.patches import HookPoint
from model.run.protocols import check_same_length
from model.system.border import at_border
from model.trace.arrays import Array, Wide
from model.trace.collect import array_of, deferred_logits
from model.trace.trace import Logits, Trace
from model.trace.unproven import WORDS

if TYPE_CHECKING:
    import pandas as pd

    from model.run.model import Model

Ablation = Literal["zero", "mean", "resample"]
ABLATIONS: tuple[Ablation, ...] = ("zero", "mean", "resample")
PATCHED = "patched"  # column
ALONE = "In this pass a part was replaced, and only its prediction was kept."
PATCH_COLUMNS = [
    "prompt",
    "condition",
    "layer",
    "head",
    "token",
    "role",
    "clean",
    "corrupt",
    "patched",
]
Outputs = Mapping[str, Array]  # (H, T, D) by sub-layer: what its heads give


def values_replaced(
    runs: PatchedRuns,
    metrics: Mapping[str, Metric],
) -> Iterator[tuple[Spot, dict[str, float]]]:
    """Each part, and the metrics of the pass in which it is replaced: by name, functions of a trace that read
    its prediction and its tokens only."""
    for batch in runs.batches():
        ended = runs.alone(batch)
        for row, spot in enumerate(batch):
            trace = _predicted(runs, ended[row : row + 1])
            yield spot, {name: value_of(metric, trace) for name, metric in metrics.items()}


def _predicted(runs: PatchedRuns, ended: Tensor) -> Trace:
    """A trace with nothing but its tokens and its prediction. ended: (1, T, …), last states or logits."""
    matrix, prediction = runs.model.module.output_matrix, None
    if runs.model.config.shape != "encoder":
        prediction = (
            Logits.of(array_of(ended)) if matrix is None else deferred_logits(ended, matrix)
        )
    reasons = dict.fromkeys(WORDS.keys() - {"logits"}, ALONE) | dict(runs.trace.unproven)
    empty: dict[str, Any] = dict.fromkeys(("attention", "norms", "feed_forward", "experts"), ())
    empty |= {"residual": {}, "summands": {}, "written": {}, "angles": None}
    return replace(runs.trace, **empty, prediction=prediction, unproven=reasons)


@dataclass(frozen=True, eq=False)
class HeadDonors:
    """What heads give in the place of their own output.

    kind: "zero": nothing. "mean": the mean over all prompts. "resample": the output on another prompt, drawn
    by chance. Averaged and exchanged are numbers of tokens that belong together: of the same position, where
    each prompt has others with as many tokens and its roles at the same places; else of the same role, where
    all tokens without a role are one.
    """

    model: "Model"
    prompts: Sequence[PlacedPrompt]
    kind: Ablation
    intervention: Intervention
    seed: int
    places: Sequence[tuple[Hashable, ...]]  # (token,) of each prompt
    means: Mapping[str, Mapping[Hashable, Wide]]  # (H, D) by sub-layer and place; of "mean" only

    @classmethod
    def of(
        cls,
        model: "Model",
        prompts: Sequence[PlacedPrompt],
        kind: Ablation,
        intervention: Intervention = UNCHANGED,
        seed: int = 0,
    ) -> "HeadDonors":
        """What heads give on some prompts.

        Args:
            kind: "zero", "mean" or "resample".
            intervention: holds in the passes that are averaged or drawn from.
            seed: of the draws of "resample".

        Raises ValueError for another kind, and where prompts have nothing in common.
        """
        if kind not in ABLATIONS:
            raise ValueError(f"ablate is {kind!r}; it must be one of {', '.join(ABLATIONS)}.")
        places = [] if kind == "zero" else _places_together(model, prompts)
        means = {}
        if kind == "mean":
            passes = trace_all(
                model, (one.prompt.text for one in prompts), intervention=intervention
            )
            means = _means(zip(passes, places, strict=True))
        return cls(model, prompts, kind, intervention, seed, places, means)

    def kept(self, number: int, trace: Trace) -> dict[HookPoint, Tensor]:
        """(1, H, T, D) by site: what is put into passes over one prompt. trace: its own pass."""
        return {
            ("output", name): torch.tensor(outputs, device=self.model.device)[None]
            for name, outputs in self._outputs(number, trace).items()
        }

    @cached_property
    def _by_places(self) -> Mapping[frozenset[Hashable], Sequence[int]]:
        """The numbers of the prompts that have the same places."""
        numbers: dict[frozenset[Hashable], list[int]] = {}
        for number, places in enumerate(self.places):
            numbers.setdefault(frozenset(places), []).append(number)
        return numbers

    def _outputs(self, number: int, trace: Trace) -> Outputs:
        if self.kind == "zero":
            return {one.name: np.zeros_like(one.output) for one in trace.attention}
        own = self.places[number]
        if self.kind == "mean":
            return {
                name: np.stack([means[place] for place in own], 1).astype(np.float32)
                for name, means in self.means.items()
            }
        random, wanted = np.random.default_rng((self.seed, number)), frozenset(own)
        others = [
            at
            for theirs, numbers in self._by_places.items()
            if wanted <= theirs
            for at in numbers
            if at != number
        ]
        if not others:
            raise ValueError(
                f"No other prompt has all roles of {self.prompts[number].prompt}, to take an output from."
            )
        donor = random.choice(others)
        theirs = self.places[donor]
        taken = [
            random.choice([at for at, place in enumerate(theirs) if place == mine]) for mine in own
        ]
        text = self.prompts[donor].prompt.text
        (other,) = trace_all(self.model, [text], intervention=self.intervention)
        return {one.name: one.output[:, taken] for one in other.attention}


def _places_together(model: "Model", prompts: Sequence[PlacedPrompt]) -> list[tuple[Hashable, ...]]:
    """(token,) of each prompt: equal where tokens of several prompts belong together."""
    if model.config.shape == "encoder-decoder":
        raise ValueError(
            f"{model.name} writes a text of its own for each prompt, whose tokens do not belong together: "
            "its heads can be ablated to zero."
        )
    layouts = [(one.count, tuple(sorted(one.roles.items()))) for one in prompts]
    if min(Counter(layouts).values(), default=2) > 1:
        places = {layout: tuple((layout, at) for at in range(layout[0])) for layout in layouts}
        return [places[layout] for layout in layouts]
    roles = [one.role_of for one in prompts]
    having = Counter(role for names in roles for role in {*names})
    for one, names in zip(prompts, roles, strict=True):
        for role in names:
            if having[role] < 2:
                what = f"the role “{role}”" if role else "a token without a role"
                raise ValueError(f"No prompt but {one.prompt} has {what} to take an output from.")
    return [*roles]


def _means(
    passes: Iterable[tuple[Trace, tuple[Hashable, ...]]],
) -> dict[str, dict[Hashable, Wide]]:
    """(H, D) by sub-layer and place."""
    sums: dict[str, dict[Hashable, Wide]] = {}
    counts: Counter[Hashable] = Counter()
    for trace, places in passes:
        counts.update(places)
        for attention in trace.attention:
            of_layer = sums.setdefault(attention.name, {})
            for at, place in enumerate(places):
                output = attention.output[:, at].astype(np.float64)
                of_layer[place] = of_layer[place] + output if place in of_layer else output
    return {
        name: {place: total / counts[place] for place, total in of_layer.items()}
        for name, of_layer in sums.items()
    }


@at_border
def patch_all(
    model: "Model",
    prompts: GivenPrompts,
    metric: str | Metric,
    *,
    what: What = "head",
    place: str | int = "",
    receiver: tuple[str | int, int] | None = None,
    reads: Sequence[PathReads] = READS,
    feed_forwards: FeedForwards = "fixed",
    progress: PromptProgress = False,
    stop: Callable[[], bool] = lambda: False,
) -> "pd.DataFrame":
    """Parts of the run over each prompt's corrupt text put into the run over its text, one at a time.

    ```python
    text, corrupt = "Mary and John went. John saw", "Mary and John went. Mary saw"
    prompts = [Prompt(text, answers=("Mary", "John"), corrupt=corrupt)]
    frame = patch_all(model, prompts, logit_difference())
    frame.groupby(["layer", "head"])["share"].agg(["mean", "std"])
    ```

    One row for each prompt and part: prompt (its number), condition, layer, head and token (-1 where the part
    is all heads, or all tokens), role (of the token; "" without one), clean, corrupt and patched (the metric
    of the run over the text, of that over the corrupt text, and of the text's with the part of the other),
    and share: 0 where the part changes nothing, 1 where it does all; NaN where both runs have the same
    metric.

    Args:
        metric: a function of a trace, or a name as in `measure`; of a patched run it has the tokens and the
            prediction only.
        what: the part: "head", "weights", "head_tokens", "stream" or "feed_forward", as `patch_map` has them.
        place: the sub-layer of "head_tokens", or the number of its layer.
        receiver: a head (sub-layer, number): what earlier heads do by way of it alone (path patching).
        reads: what the receiver reads of them: "query", "key", "value".
        feed_forwards: on the way to the receiver "fixed" as in the run over the text, or "recomputed", as
            `path_map` has them.
        progress: called with prompts done and prompts in all; True: tqdm's bar.
        stop: asked before each prompt; True ends, and what was done is given.

    Raises ValueError for prompts without a corrupt text, or with one of another length, for roles and answers
    as `measure` does, and where no head comes before the receiver.
    """
    import pandas as pd

    asked = [placed(model, one) for one in prompts_of(prompts)]
    (judge,) = named(metric).values()
    metrics = [for_prompt(model, {PATCHED: judge}, one.prompt) for one in asked]
    place = place if place == "" else model.layer(place).place.name
    into = None if receiver is None else (model.layer(receiver[0]).place.name, receiver[1])
    for one in asked:
        if not one.prompt.corrupt:
            raise ValueError(f"{one.prompt} has no corrupt text to take parts from.")
        check_same_length(one.count, len(model.tokens(one.prompt.corrupt)))
    path = None if into is None else PathInto(into, reads, feed_forwards)
    rows: list[dict[str, object]] = []
    for number in counted(len(asked), progress, stop):
        one = asked[number]
        trace = model.trace(one.prompt.text)
        other, _ = model.passed(model.tokens(one.prompt.corrupt), trace.target_tokens)
        runs = PatchedRuns(model, trace, other, what, str(place), path=path)
        about: dict[str, object] = {"prompt": number, "condition": one.prompt.condition}
        for name, run in (("clean", trace), ("corrupt", other)):
            about[name] = value_of(metrics[number][PATCHED], run)
        for spot, values in values_replaced(runs, metrics[number]):
            of_text = spot.token is not None and not trace.target_tokens
            part: dict[str, object] = {
                "layer": spot.name,
                "head": -1 if spot.head is None else spot.head,
                "token": -1 if spot.token is None else spot.token,
                "role": one.role_of[spot.token or 0] if of_text else "",
            }
            rows.append(about | part | values)
    frame = pd.DataFrame(rows, columns=PATCH_COLUMNS)
    apart = frame["corrupt"] - frame["clean"]
    frame["share"] = (frame["patched"] - frame["clean"]) / apart.where(apart != 0)
    return frame
