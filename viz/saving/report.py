"""A small report of the current view as one HTML file: settings, formula, picture, effect, check. Pure."""

import html
import re
from collections.abc import Mapping, Sequence
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
from viz.state.intervention_words import parts

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
    """The report as a file that opens without a network."""
    body = "".join(
        [
            _paragraph(subject.look_for),
            _settings(subject),
            _formula(subject.attention, picture),
            _effect(subject),
            _check(subject, picture),
        ]
    )
    return standalone(picture.title, body, picture_figures(picture))


def _paragraph(text: str) -> str:
    return f"<p><strong>What to look for.</strong> {html.escape(text)}</p>" if text else ""


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
    note = (
        "<p>A trained model run this way is a counterfactual: it never learned to.</p>"
        if changed
        else ""
    )
    return f"<dl>{listed}</dl>{note}"


def _tokens(labels: Sequence[str]) -> str:
    return " ".join(f'<span class="token">{html.escape(label)}</span>' for label in labels)


def _formula(attention: Attention, picture: HeadPicture) -> str:
    """The formula of the stage, in LaTeX for the page's own KaTeX and in words before that."""
    formula = formulas_of(attention, has_mask=picture.has_mask)[picture.stage.name]
    inked = _INK.sub(lambda found: _ink(found[1]), formula.general)
    return (
        f'<div class="formula" data-latex="{html.escape(inked)}">{html.escape(formula.plain)}</div>'
        f"<p>{html.escape(picture.stage.look)}</p>"
    )


def _ink(name: str) -> str:
    inks: Mapping[str, str] = {each: quantity.ink[0] for each, quantity in QUANTITIES.items()}
    return inks.get(name, "#222222")


def _effect(subject: Subject) -> str:
    """What the change did, in a table; nothing without a change."""
    before, after = subject.baseline, subject.trace
    if before is None:
        return ""
    ours, theirs = (
        row_statistics(run) for run in (before.find(subject.attention.name), subject.attention)
    )
    entropies = [f"{run.entropy.mean():.4f}" for run in (ours, theirs)]
    rows = [
        ("entropy of a row in nats, mean over the layer", *entropies),
        (
            "largest weight of a row, mean",
            f"{ours.largest.mean():.4f}",
            f"{theirs.largest.mean():.4f}",
        ),
    ]
    said = f"Largest difference of any state: {largest_difference(before, after):.3g}."
    if before.prediction is not None and after.prediction is not None:
        error = max(rounding(before), rounding(after))
        if len(losses(before)):
            found = [nats(losses(run).mean(), error) for run in (before, after)]
            rows.append(("loss of the sentence, in nats", *found))
        apart = float(divergences(before, after)[-1])
        moved = nats(apart, divergence_rounding(apart, 2 * error))
        said += f" KL divergence of the next token: {moved} nats."
    lines = "".join(
        f"<tr><td>{name}</td><td>{old}</td><td>{new}</td></tr>" for name, old, new in rows
    )
    head = "<tr><th></th><th>unchanged</th><th>changed</th></tr>"
    return f"<table>{head}{lines}</table><p>{said}</p>"


def _check(subject: Subject, picture: HeadPicture) -> str:
    own = difference(subject.attention.check())
    whole = difference(subject.trace.check())
    return (
        f"<p>Check: weights · V of {html.escape(subject.attention.name)}, recomputed from the recorded "
        f"Q, K and V, differ from the model's own output by at most {own}; over the whole run, norms "
        f"too, the largest difference is {whole}. Row = query, column = key; a row of weights sums to "
        "1; grey cells are not allowed.</p>"
    )
