"""Results of papers as a report in Markdown: of one model or several."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from model.papers.claims import (
    HOLDS,
    HOLDS_NOT,
    NOT_ASKED,
    VERDICTS,
    PaperResult,
    PaperVerdict,
    claims,
)
from model.system.machine import processor
from model.system.words import Words

say = Words("papers.report")

SIGNS: Mapping[PaperVerdict, str] = {HOLDS: "✓ holds", HOLDS_NOT: "✗ does not hold", NOT_ASKED: "–"}
COMMAND = "python -m model.papers"
ResultsByModel = Mapping[str, Sequence[PaperResult]]  # by the name of the model


def summary(results: Sequence[PaperResult]) -> str:
    """How many claims hold, in a sentence."""
    counts = Counter(result.verdict for result in results)
    hold, hold_not, not_asked = (counts[verdict] for verdict in VERDICTS)
    holds, does = "holds" if hold == 1 else "hold", "does" if hold_not == 1 else "do"
    return say(
        "not_hold_cannot", hold=hold, holds=holds, hold_not=hold_not, does=does, not_asked=not_asked
    )


def report(answers: ResultsByModel) -> str:
    """The verdicts of all models in one table, and what was measured of each."""
    command = f"{COMMAND} {' '.join(answers)} -o FILE"
    parts = [
        say("results_papers_asked"),
        "",
        say("papers_found_about"),
        "",
        say(
            "made_processors_load",
            command=command,
            value=processor() or "this computer",
            cpu_count=os.cpu_count(),
            first_getloadavg=os.getloadavg()[0],
        ),
        "",
        *_verdicts(answers),
        "",
        *_claims(),
    ]
    for name, results in answers.items():
        parts += ["", *_of_model(name, results)]
    return "\n".join(parts) + "\n"


def _verdicts(answers: ResultsByModel) -> list[str]:
    """A row a claim, a column a model; at the end what it took."""
    lines = [_row(["claim", *answers]), _row(["---"] * (1 + len(answers)))]
    by_model = {
        name: {result.name: result for result in results} for name, results in answers.items()
    }
    asked = {name for known in by_model.values() for name in known}
    for name, claim in claims().items():
        if name in asked:
            cells = [
                SIGNS[known[name].verdict] if name in known else "" for known in by_model.values()
            ]
            lines.append(_row([claim.title, *cells]))
    counts = [summary(results) for results in answers.values()]
    seconds = [f"{sum(one.seconds for one in results):.1f} s" for results in answers.values()]
    return [*lines, _row(["**together**", *counts]), _row(["**time**", *seconds])]


def _claims() -> list[str]:
    lines = ["## The claims", "", _row(["claim", "the paper", "here", "rule"]), _row(["---"] * 4)]
    for claim in claims().values():
        figure = claim.figure_of_the_paper
        lines.append(
            _row(
                [
                    f"**{claim.title}.** {claim.claim}",
                    f"{figure.words} *{figure.source}*",
                    claim.measured,
                    claim.rule.words,
                ]
            )
        )
    return lines


def _of_model(name: str, results: Sequence[PaperResult]) -> list[str]:
    head = ["claim", "figure", "control", "verdict", "reason", "texts", "draws", "s"]
    lines = [f"## {name}", "", f"{summary(results)}.", "", _row(head), _row(["---"] * len(head))]
    for one in results:
        figure, control = ("" if it is None else str(it) for it in (one.figure, one.control))
        counts = ["" if not count else str(count) for count in (one.prompts, one.seeds)]
        cells = [one.title, figure, control, one.verdict, one.reason, *counts, f"{one.seconds:.1f}"]
        lines.append(_row(cells))
    return lines


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
