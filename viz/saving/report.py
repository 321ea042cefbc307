"""A small report of the current view as one HTML file: settings, formula, picture, effect, check. Pure."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from model.analysis.run_comparison import (
    divergence_rounding,
    divergences,
    largest_difference,
    losses,
    rounding,
    row_statistics,
)
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.explorer.message import formulas_of
from viz.notation.labels import token_label
from viz.notation.numbers import difference, nats
from viz.notation.theme import QUANTITIES
from viz.saving.offline_page import HeadPicture, picture_figures, standalone
from viz.state.intervention_words import COUNTERFACTUAL, parts

_INK = re.compile(r"@ink:(\w+)@")


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is about: a run, the unchanged run where it is changed, a place, a link."""

    title: str  # the model's
    trace: Trace
    baseline: Trace | None
    attention: Attention
    link: str
    look_for: str = ""


def report(subject: Subject, picture: HeadPicture) -> bytes:
    said = html.escape(subject.look_for)
    own, whole = (difference(part.check()) for part in (subject.attention, subject.trace))
    body = [
        f"<p><strong>What to look for.</strong> {said}</p>" if said else "",
        _settings(subject),
        _formula(subject.attention, picture),
        _effect(subject),
        f"<p>Check: weights · V of {html.escape(subject.attention.name)}, recomputed from the recorded "
        f"Q, K and V, differ from the model's own output by at most {own}; over the whole run, norms "
        f"too, the largest difference is {whole}. Row = query, column = key; a row of weights sums to "
        "1; grey cells are masked.</p>",
    ]
    return standalone(picture.title, "".join(body), picture_figures(picture))


def _settings(subject: Subject) -> str:
    trace = subject.trace
    labels = tuple(token_label(token.text) for token in trace.tokens)
    changed = [part.words for part in parts(trace.intervention, labels)]
    rows = {
        "Model": html.escape(subject.title),
        "Sentence": html.escape(trace.text),
        "Tokens": _tokens(labels),
        "Target": _tokens([token_label(token.text) for token in trace.target_tokens]),
        "Layer": html.escape(f"{subject.attention.name}, {subject.attention.heads} heads"),
        "Scores times": f"{subject.attention.scale:.6g}",
        "Ran on": html.escape(trace.device),
        "Changed": html.escape("; ".join(changed) or "nothing"),
        "Link": f"<code>{html.escape(subject.link)}</code>",
    }
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items() if value)
    return f"<dl>{listed}</dl>{f'<p>{COUNTERFACTUAL}</p>' if changed else ''}"


def _tokens(labels: Sequence[str]) -> str:
    return " ".join(f'<span class="token">{html.escape(label)}</span>' for label in labels)


def _formula(attention: Attention, picture: HeadPicture) -> str:
    formula = picture.formula
    if formula is None:
        formula = formulas_of(attention, picture.later)[picture.stage.name]
    inks: dict[str, str] = {name: quantity.ink[0] for name, quantity in QUANTITIES.items()}
    inked = _INK.sub(lambda found: inks.get(found[1], "#222222"), formula.general)
    return (
        f'<div class="formula" data-latex="{html.escape(inked)}">{html.escape(formula.plain)}</div>'
        f"<p>{html.escape(picture.stage.look)}</p>"
    )


def _effect(subject: Subject) -> str:
    """What the intervention did, in a table; nothing without an intervention."""
    before, after = subject.baseline, subject.trace
    if before is None:
        return ""
    layers = (before.find(subject.attention.name), subject.attention)
    found = [row_statistics(layer) for layer in layers]
    rows = {
        "entropy of a row in nats, mean over the layer": [
            f"{run.entropy.mean():.4f}" for run in found
        ],
        "largest weight of a row, mean": [f"{run.largest.mean():.4f}" for run in found],
    }
    said = f"Largest difference of any state: {largest_difference(before, after):.3g}."
    if before.prediction is not None and after.prediction is not None:
        error = max(rounding(before), rounding(after))
        if len(losses(before)):
            rows["loss of the sentence, in nats"] = [
                nats(losses(run).mean(), error) for run in (before, after)
            ]
        apart = float(divergences(before, after)[-1])
        moved = nats(apart, divergence_rounding(apart, 2 * error))
        said += f" KL divergence of the next-token prediction: {moved} nats."
    lines = "".join(
        f"<tr><td>{name}</td><td>{old}</td><td>{new}</td></tr>" for name, (old, new) in rows.items()
    )
    head = "<tr><th></th><th>unchanged</th><th>changed</th></tr>"
    return f"<table>{head}{lines}</table><p>{said}</p>"
