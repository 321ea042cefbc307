"""From a run, or from a model and a text, to a widget."""

from typing import TYPE_CHECKING

import numpy as np

from model.loading.registry import load_model
from model.trace.trace import Trace
from viz.explorer.selection import Selection
from viz.notebook.run import Run, compared
from viz.notebook.widget import AttentionExplorer

if TYPE_CHECKING:
    from model.run.model import Model


def show(
    subject: object,
    text: str | None = None,
    *,
    tokenizer: object = None,
    place: str | None = None,
    head: int = 0,
    stage: str = "weights",
    query: int | None = None,
    key: int | None = None,
) -> AttentionExplorer:
    """One run in a notebook: its heads, stages and cells, to be chosen there or by the traits of the widget.

    subject: a trace; or a model with a `text`: what `load_model` returns, a name that it takes, or a loaded
    model of the transformers library with its `tokenizer`. place: name of an attention sub-layer; None: the
    first. head, query, key: counted from 0. stage: "scores", "weights", … query None: the last token. key
    None: the one with the largest weight.
    Raises ValueError where the run has no such place, head, stage or cell, and where `text` does not fit the
    subject.
    """
    return _widget(_run(subject, text, tokenizer), place, head, stage, query, key)


def compare(
    trace: Trace,
    other: Trace,
    *,
    place: str | None = None,
    head: int = 0,
    stage: str = "weights",
    query: int | None = None,
    key: int | None = None,
) -> AttentionExplorer:
    """Two runs in a notebook: `trace` as the baseline, `other` as the changed run, and their difference.

    Words that differ stand in both forms: "cat → dog". The rest as in `show`.
    Raises ValueError where the runs have no layer in common, or one whose arrays have other shapes.
    """
    return _widget(compared(changed=other, baseline=trace), place, head, stage, query, key)


def _run(subject: object, text: str | None, tokenizer: object) -> Run:
    if isinstance(subject, Trace):
        if text is not None:
            raise ValueError("A trace has its text already: show(trace), or show(model, text).")
        return Run(subject)
    if text is None:
        raise ValueError("A model needs a text: show(model, text).")
    model = _model(subject, tokenizer)
    return Run(model.trace(text), model=model)


def _model(subject: object, tokenizer: object) -> "Model":
    from torch import nn

    from model.run.model import Model

    if isinstance(subject, Model):
        return subject
    if isinstance(subject, str):
        return load_model(subject)
    if not isinstance(subject, nn.Module):
        kind = type(subject).__name__
        raise ValueError(f"A trace, a model or a model's name can be shown, not {kind}.")
    from model.loading.in_memory import opened

    return opened(subject, tokenizer)


def _widget(
    run: Run, place: str | None, head: int, stage: str, query: int | None, key: int | None
) -> AttentionExplorer:
    attention = run.trace.find(run.places[0] if place is None else place)
    last = attention.vectors[0].shape[1] - 1
    cell = Selection(head, stage, last if query is None else query, key or 0)
    widget = AttentionExplorer(run, attention.name, cell)
    if key is None:
        widget.key = int(np.argmax(attention.weights(widget.head)[widget.query]))
    return widget
