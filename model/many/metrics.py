"""What is measured of the prediction of a pass."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from model.many.prompts import AnswerToken, Prompt, answer_id
from model.system.border import at_border, check_argument, check_fields, check_name
from model.trace.arrays import Array
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Metric = Callable[[Trace], float]
GivenMetric = (
    str | Metric | Iterable[str | Metric] | Mapping[str, str | Metric]
)  # by names of METRICS


@dataclass(frozen=True)
class AnswerMetric:
    """A metric that depends on answers: on each prompt's own, or on those given here.

    >>> from model.many import AnswerMetric
    >>> hill = trace.tokens[1].id
    >>> logit = AnswerMetric(
    ...     "logit", lambda trace, ids: trace.require_prediction().after(-1)[ids[0]], 1, answers=(hill,)
    ... )
    >>> round(logit(trace), 2)
    18.35

    compute: from a trace and ids of tokens. needs: how many of these it cannot do without. answers: those of
    all prompts; none: each prompt's.
    """

    name: str
    compute: Callable[[Trace, Sequence[int]], float]
    needs: int = 0
    answers: tuple[AnswerToken, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "__doc__", self.compute.__doc__ or type(self).__doc__)

    def __repr__(self) -> str:
        of = ", ".join(map(repr, self.answers)) or "the answers of each prompt"
        return f"<AnswerMetric {self.name}: {of}>"

    @at_border
    def __call__(self, trace: Trace) -> float:
        """The metric of one trace. Raises ValueError where it has too few answers, for a word, whose id only
        `measure` knows, and for an encoder."""
        ids = [one for one in self.answers if not isinstance(one, str)]
        if len(ids) < len(self.answers):
            raise ValueError(
                f"A trace has no tokenizer: outside of `measure` {self.name} takes ids of tokens, not words."
            )
        if len(ids) < self.needs:
            raise ValueError(f"{self.name} needs {self.needs} answers; it has {len(ids)}.")
        return float(self.compute(trace, ids))


def value_of(metric: Metric, trace: Trace) -> float:
    """What a metric gives. Raises ValueError where that is no number."""
    value = metric(trace)
    check_argument("What the metric gives", value, float)
    return float(value)


def for_prompt(model: "Model", metrics: Mapping[str, Metric], prompt: Prompt) -> dict[str, Metric]:
    """The metrics with the ids of a prompt's answers. Raises ValueError where one needs more answers than
    there are, and for an answer that is no single token."""
    made: dict[str, Metric] = {}
    for name, metric in metrics.items():
        if isinstance(metric, AnswerMetric):
            answers = metric.answers or prompt.answers
            if len(answers) < metric.needs:
                raise ValueError(
                    f"{metric.name} needs {metric.needs} answers; {prompt} has {len(answers)}."
                )
            metric = replace(
                metric, answers=tuple(answer_id(model, prompt, one) for one in answers)
            )
        made[name] = metric
    return made


def named(metric: GivenMetric | None) -> dict[str, Metric]:
    """Metrics by the names of their columns. Raises ValueError for a name that none has."""
    if metric is None:
        return {}
    if isinstance(metric, Mapping):
        return {key: one for key, of in metric.items() for one in named(of).values()}
    if isinstance(metric, str):
        check_name("metric", metric, METRICS)
        return {metric: METRICS[metric]}
    if isinstance(metric, Iterable):
        return {name: one for of in metric for name, one in named(of).items()}
    name = str(getattr(metric, "name", getattr(metric, "__name__", "metric")))
    return {name if name.isidentifier() else "metric": metric}


@at_border
def logit_difference(
    wanted: AnswerToken | None = None, other: AnswerToken | None = None
) -> AnswerMetric:
    """After the last token: the logit of the wanted answer less that of the other.

    >>> from model.many import logit_difference
    >>> hill, tom = trace.tokens[1].id, trace.tokens[12].id
    >>> round(logit_difference(hill, tom)(trace), 2)
    11.28

    Args:
        wanted, other: words as they would follow the text, or ids of tokens; None: those of each prompt.

    Raises ValueError for one answer without the other.
    """
    given = tuple(one for one in (wanted, other) if one is not None)
    if len(given) == 1:
        raise ValueError("logit_difference takes two answers, or none.")
    return replace(_LOGIT_DIFFERENCE, answers=given)


def _logit_difference(trace: Trace, answers: Sequence[int]) -> float:
    last = trace.require_prediction().after(-1)
    return float(last[answers[0]]) - float(last[answers[1]])


def _asked(trace: Trace, answers: Sequence[int]) -> tuple[Array, list[int]]:
    """(row, vocabulary): logits, and the id that is right after each of them."""
    logits = trace.require_prediction()
    if answers:
        return logits.after(-1)[None], [answers[0]]
    following = [token.id for token in trace.tokens_of("decoder")[1:]]
    if not following:
        raise ValueError("The text has one token only: nothing in it is predicted.")
    return logits.rows(0, len(following)), following


def _loss(trace: Trace, answers: Sequence[int]) -> float:
    """In nats, of the wanted answer; without answers the mean over the text's own tokens after the first.

    >>> from model.many import loss
    >>> round(loss(trace), 2)
    4.25
    """
    logits, ids = _asked(trace, answers)
    wide = logits.astype(np.float64)
    top = wide.max(-1)
    logarithms = top + np.log(np.exp(wide - top[:, None]).sum(-1))
    return float((logarithms - wide[np.arange(len(ids)), ids]).mean())


def _accuracy(trace: Trace, answers: Sequence[int]) -> float:
    """1 where the wanted answer has the largest logit of all, else 0; without answers the share of the text's
    own tokens after the first that have.

    >>> from model.many import accuracy
    >>> round(accuracy(trace), 2)
    0.17
    """
    logits, ids = _asked(trace, answers)
    return float((logits.argmax(-1) == ids).mean())


_LOGIT_DIFFERENCE = AnswerMetric("logit_difference", _logit_difference, needs=2)
loss = AnswerMetric("loss", _loss)
accuracy = AnswerMetric("accuracy", _accuracy)
METRICS: Mapping[str, Metric] = {one.name: one for one in (loss, accuracy, _LOGIT_DIFFERENCE)}
