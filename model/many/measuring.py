"""The numbers of many prompts in one table: of every head, and of every prediction."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from sys import intern
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from model.analysis.attribution.patching import PatchedRuns
from model.analysis.heads.ranking import STATISTICS, HeadTokens, Statistic
from model.analysis.heads.statistics import heads_of
from model.many.metrics import GivenMetric, Metric, for_prompt, named, value_of
from model.many.progress import PromptProgress, counted
from model.many.prompts import FIRST, LAST, GivenPrompts, PlacedPrompt, placed, prompts_of
from model.many.replacing import Ablation, HeadDonors, values_replaced
from model.many.traces import trace_all
from model.nn.intervention import UNCHANGED, Intervention, PassChange
from model.nn.steering import Steering
from model.run.protocols import in_names
from model.system.border import at_border, check_name
from model.trace.arrays import Array, Wide
from model.trace.blocks import of_query
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

    from model.run.model import Model

HeadStatistic = Callable[[Array], float]  # of one head's weights, (query, key)
RolePair = tuple[str, str]  # who looks, and who is looked at
TableColumns = dict[str, NDArray[Any]]  # of equal lengths
OWN_COLUMNS = ("prompt", "condition", "run", "layer", "head", "query", "key", "weight")
NOT_CHANGED = "unchanged"
TOGETHER = 256  # prompts whose columns are joined


@at_border
def measure(
    model: "Model",
    prompts: GivenPrompts,
    *,
    weights: Iterable[RolePair] = (),
    statistics: str | Iterable[str] | Mapping[str, HeadStatistic] = (),
    metric: GivenMetric | None = None,
    interventions: PassChange | Mapping[str, PassChange] | None = None,
    ablate: Ablation | None = None,
    seed: int = 0,
    batch: int | None = None,
    progress: PromptProgress = False,
    stop: Callable[[], bool] = lambda: False,
) -> "pd.DataFrame":
    """A table with a row for each prompt, head and pair of roles.

    ```python
    prompts = [
        Prompt("Mary and John left. John called", "names", {"other": "Mary"}, ("Mary", "John")),
        Prompt("Tom and Anna left. Anna called", "names", {"other": "Tom"}, ("Tom", "Anna")),
    ]
    pairs = [("last", "other")]
    frame = measure(model, prompts, weights=pairs, metric=logit_difference(), ablate="mean")
    frame.groupby(["condition", "layer", "head"])["logit_difference_effect"].agg(["mean", "std"])
    ```

    Columns: prompt (its number), condition, run ("unchanged", or an intervention's name), layer and head;
    query, key and weight, where pairs of roles are asked for; one column for each statistic and each metric;
    and with `ablate` for each metric NAME also NAME_effect: the metric without the head less the metric with
    it. A metric is one number of a pass, so it is the same in all rows of a prompt and run. Where nothing is
    asked of heads, a prompt has one row for each run, without layer and head.

    GivenPrompts run one batch after another (`trace_all`), and no trace is kept.

    Args:
        model: what `load_model` gives.
        prompts: texts, token ids of each, `Prompt`s, dictionaries with the fields of a `Prompt`, or a table
            with such columns.
        weights: pairs of roles (who looks, who is looked at): the weight from one to the other, 0 to 1. From
            words of several tokens it is their mean, to such words their sum (Clark et al. 2019). NaN in a
            sub-layer that does not read the text in which they stand.
        statistics: names (previous, induction, first, self, next, separators, distance, entropy; what they
            are: model/analysis/heads/ranking.py), or functions by name, each of one head's weights (query,
            key), rows sum to 1. NaN where a text has nothing that the statistic counts.
        metric: a function of a trace, or several by name; or names of ours, "loss", "accuracy" and
            "logit_difference". With `ablate`, a pass without a head gives it a trace with tokens and
            prediction only.
        interventions: by name; every number is taken without and with each of them. One alone is "changed".
            A `Steering` adds a direction to the stream.
        ablate: what stands in the place of one head's output, for each head in a pass of its own: "zero";
            "mean", its mean over the prompts; "resample", what it gives on another prompt. Both are of the
            same position, where each prompt has others of as many tokens with the same roles there; else of
            the same role.
        seed: of the draws of "resample".
        batch: prompts of one pass at most, as in `trace_all`; not of the passes without a head.
        progress: called with prompts done and prompts in all, counting each run; True: tqdm's bar.
        stop: asked before each prompt; True ends, and the rows so far are given.

    Raises ValueError, before the first pass, for roles whose words are not in the text or are there twice,
    for answers that are no single token, for pairs of unknown roles, and for unknown statistics; and as
    `trace_all`. Raises ImportError for a bar without tqdm.
    """
    import pandas as pd

    metrics, runs = named(metric), _runs(interventions)
    asked = [placed(model, one) for one in prompts_of(prompts)]
    questions = _Questions(
        model,
        asked,
        [for_prompt(model, metrics, one.prompt) for one in asked],
        list(weights),
        _statistics(statistics),
        ablate,
        seed,
        batch,
    )
    every = (columns for run in runs.items() for columns in questions.answers(*run))
    total = counted(len(runs) * len(asked), progress, stop)
    return pd.DataFrame(_joined(columns for _, columns in zip(total, every, strict=False)))


def _joined(every: Iterable[TableColumns]) -> TableColumns:
    """One below the other. A few long columns take less memory than many short ones."""
    parts = iter(every)
    joined: list[TableColumns] = []
    while some := [*joined, *islice(parts, TOGETHER)]:
        if len(some) == len(joined):
            break
        joined = [{name: np.concatenate([part[name] for part in some]) for name in some[0]}]
    return joined[0] if joined else {}


def _runs(interventions: PassChange | Mapping[str, PassChange] | None) -> dict[str, PassChange]:
    """What is changed in each run, by its name."""
    if isinstance(interventions, Intervention | Steering):
        interventions = {"changed": interventions}
    if NOT_CHANGED in (interventions or {}):
        raise ValueError(
            f"“{NOT_CHANGED}” is the run without any intervention. Choose another name."
        )
    return {NOT_CHANGED: UNCHANGED, **(interventions or {})}


def _statistics(
    asked: Iterable[str] | Mapping[str, HeadStatistic],
) -> dict[str, Statistic | HeadStatistic]:
    """Statistics by the names of their columns. Raises ValueError for a name that none has."""
    if isinstance(asked, Mapping):
        return dict(asked)
    if isinstance(asked, str):
        asked = [asked]
    known, names = {one.name: one for one in STATISTICS}, list(asked)
    for name in names:
        check_name("statistic", name, known)
    return {name: known[name] for name in names}


@dataclass(frozen=True, eq=False)
class _Questions:
    """What is asked of every prompt."""

    model: "Model"
    prompts: Sequence[PlacedPrompt]
    metrics: Sequence[Mapping[str, Metric]]  # of each prompt
    pairs: Sequence[RolePair]
    statistics: Mapping[str, Statistic | HeadStatistic]
    ablate: Ablation | None
    seed: int
    batch: int | None

    def __post_init__(self) -> None:
        given: Sequence[object] = self.pairs
        for pair in given:
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise ValueError(
                    f"weights holds {pair!r}; it must hold pairs of roles: who looks, who is looked at."
                )
        metrics = self.metrics[0] if self.metrics else {}
        for name in (*self.statistics, *metrics):
            if name in OWN_COLUMNS or (name in self.statistics and name in metrics):
                raise ValueError(f"The table has another column {name!r}. Choose another name.")
        for prompt in self.prompts:
            for role in {role for pair in self.pairs for role in pair}:
                if role not in (FIRST, LAST, *prompt.roles):
                    known = ", ".join((FIRST, LAST, *prompt.roles))
                    raise ValueError(f"{prompt.prompt} has no role “{role}”; it has {known}.")
        if self.ablate is not None and not any(self.metrics):
            raise ValueError("ablate needs a metric: what the pass without a head is judged by.")

    def answers(self, run: str, change: PassChange) -> Iterator[TableColumns]:
        """The rows of one prompt after the other. run: what the change is called."""
        donors = None
        if self.ablate is not None:
            held = in_names(change, self.model)
            donors = HeadDonors.of(self.model, self.prompts, self.ablate, held, self.seed)
        texts = (one.prompt.text for one in self.prompts)
        passes = trace_all(self.model, texts, intervention=change, batch=self.batch)
        for number, trace in enumerate(passes):
            values = {
                name: value_of(metric, trace) for name, metric in self.metrics[number].items()
            }
            columns: TableColumns = {}
            if self.pairs or self.statistics or donors is not None:
                columns = self._of_heads(trace, self.prompts[number])
            rows = len(columns["head"]) if columns else 1
            columns |= {name: np.full(rows, value) for name, value in values.items()}
            if donors is not None:
                columns |= self._effects(donors, number, trace, values)
            about = {"condition": self.prompts[number].prompt.condition, "run": run}
            yield {
                "prompt": np.full(rows, number),
                **{name: np.full(rows, word, object) for name, word in about.items()},
                **columns,
            }

    def _of_heads(self, trace: Trace, prompt: PlacedPrompt) -> TableColumns:
        """Layer, head, roles and numbers of every head and pair of roles."""
        heads, each = heads_of(trace.attention), max(1, len(self.pairs))
        columns: TableColumns = {
            "layer": np.repeat(np.array([intern(name) for name, _ in heads], object), each),
            "head": np.repeat([head for _, head in heads], each),
        }
        if self.pairs:
            for at, name in enumerate(("query", "key")):
                words = np.array([pair[at] for pair in self.pairs], object)
                columns[name] = np.tile(words, len(heads))
            weights = [self._weights(trace, prompt, one) for one in trace.attention]
            columns["weight"] = np.concatenate(weights).ravel()
        if self.statistics:
            values = np.concatenate([self._values(trace, one) for one in trace.attention])
            for at, name in enumerate(self.statistics):
                columns[name] = np.repeat(values[:, at], each)
        return columns

    def _weights(self, trace: Trace, prompt: PlacedPrompt, attention: Attention) -> Wide:
        """(head, pair): only the rows that are asked for are computed."""
        rows: dict[int, Array] = {}  # (head, key), by query
        weights = np.full((attention.heads, len(self.pairs)), np.nan)
        for at, (query, key) in enumerate(self.pairs):
            queries = prompt.queries(query, trace, attention)
            keys = prompt.keys(key, trace, attention)
            for one in set(queries) - rows.keys():
                rows[one] = of_query(attention, one).weights()[:, 0]
            if queries and keys:
                of_pair = np.stack([rows[one][:, list(keys)] for one in queries])
                weights[:, at] = of_pair.sum(-1, dtype=np.float64).mean(0)
        return weights

    def _values(self, trace: Trace, attention: Attention) -> Wide:
        """(head, statistic)"""
        tokens = HeadTokens(
            trace.queries_of(attention), trace.keys_of(attention), attention.kind == "cross"
        )
        values = np.full((attention.heads, len(self.statistics)), np.nan)
        for head in range(attention.heads):
            weights = attention.weights(head)
            for at, statistic in enumerate(self.statistics.values()):
                if not isinstance(statistic, Statistic):
                    values[head, at] = statistic(weights)
                elif _applies(statistic, attention):
                    with suppress(ValueError):  # the text has nothing that it counts
                        values[head, at] = statistic.of(weights, tokens)
        return values

    def _effects(
        self, donors: HeadDonors, number: int, trace: Trace, values: Mapping[str, float]
    ) -> TableColumns:
        """What each metric is without each head, less what it is."""
        kept = donors.kept(number, trace)
        runs = PatchedRuns(self.model, trace, trace, "head", kept=kept)
        without = [of for _, of in values_replaced(runs, self.metrics[number])]
        return {
            f"{name}_effect": np.repeat(
                [of[name] - value for of in without], max(1, len(self.pairs))
            )
            for name, value in values.items()
        }


def _applies(statistic: Statistic, attention: Attention) -> bool:
    """Whether a statistic says something of a sub-layer's heads."""
    if attention.kind == "cross":
        return statistic.across
    return attention.kind == "causal" or not statistic.continued
