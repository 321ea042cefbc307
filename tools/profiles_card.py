"""The card of the shipped profiles, docs/profiles-card.md, and the table of both verdicts of their labels in
docs/profiles.md. `python -m tools.profiles_card` writes both."""

from pathlib import Path

import numpy as np

from model.nn.places import head_label
from model.profile import Profile, open_profile
from model.profile.battery import KINDS, LOOKED_FOR
from model.profile.shipped import Made, made, shipped_profiles
from model.system.files import write_whole
from tools.tables_of_docs import put_between
from viz.notation.numbers import signed

GUIDE = Path(__file__).parents[1] / "docs" / "profiles.md"
MARKS = (
    "<!-- verdicts: made by `python -m tools.profiles_card` -->",
    "<!-- verdicts: end -->",
)
PAGE = Path(__file__).parents[1] / "docs" / "profiles-card.md"
SHOWN = 6  # heads of a label, the highest scores first
HEAD = """# The profiles that ship

Made by `python -m tools.training.profiles`, and read back for this page by `python -m tools.profiles_card`.
The texts are not those that the shipped models learned from. [A head over a whole corpus](profiles.md) says
what is added up and what the labels mean. The seconds are those of the clock, on a machine that other work
kept busy: they tell nothing of speed.

| model | tokens | of | windows | left out | made in | MB |
|---|---|---|---|---|---|---|
"""
WHICH = """
## Which text, and which weights

| model | text | SHA-256 of the text | of the weights | made on |
|---|---|---|---|---|
"""
LABELS = f"""
## The labels

Each label with its heads, as score (control), the highest first; of more than {SHOWN} heads the number.
"""


def card() -> str:
    """The whole page."""
    known = [
        (name, folder, open_profile(folder), made(folder))
        for name, folder in shipped_profiles().items()
    ]
    sizes = "".join(_size(name, folder, found, how) for name, folder, found, how in known)
    origins = "".join(_origin(name, found, how) for name, _, found, how in known)
    labels = "".join(f"\n### {name}\n\n{_labels(found)}" for name, _, found, _ in known)
    return f"{HEAD}{sizes}{WHICH}{origins}{LABELS}{labels}"


def _size(name: str, folder: Path, found: Profile, how: Made) -> str:
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    processes = f", {how.workers} processes" if how.workers > 1 else ""
    return (
        f"| `{name}` | {found.sums.tokens:,} | {how.text} | {found.sums.windows:,} of at most "
        f"{found.about.window} tokens | {len(found.about.skipped)} | {how.seconds:,.0f} s{processes} "
        f"| {size:.2f} |\n"
    )


def _origin(name: str, found: Profile, how: Made) -> str:
    about = found.about
    return (
        f"| `{name}` | {about.corpus_name}: {how.source} | `{about.corpus}` | `{about.weights}` "
        f"| {how.machine}, {how.date} |\n"
    )


def _labels(found: Profile) -> str:
    given = found.labels[found.labels["given"]]
    lines = []
    for kind in KINDS:
        mine = given[given["label"] == kind.name].sort_values("score", ascending=False)
        if len(mine):
            heads = [
                f"{head_label((row.layer, row.head))} {row.score:.2f} ({row.control:.2f})"
                for row in mine.head(SHOWN).itertuples()
            ]
            more = f" and {len(mine) - SHOWN} more" if len(mine) > SHOWN else ""
            lines.append(f"- **{kind.title}**: {', '.join(heads)}{more}\n")
    without = len(found.sums.heads) - len(given[["layer", "head"]].drop_duplicates())
    return "".join(lines) + f"- no label: {without} of {len(found.sums.heads)} heads\n"


def guide(page: str) -> str:
    """docs/profiles.md with the table of both verdicts in its place."""
    return put_between(page, verdicts(), *MARKS)


def verdicts() -> str:
    """How many labels the effect bears out, by model, and every label that weights give."""
    known = {name: open_profile(folder) for name, folder in shipped_profiles().items()}
    counts = [_counts(name, found) for name, found in known.items()]
    rows = [row for name, found in known.items() for row in _verdicts_of(name, found)]
    return "\n".join(
        [
            "| model | labels by weights | raises | lowers | nothing | moves | names that claim an answer "
            "| of these wrong |",
            "|---|---|---|---|---|---|---|---|",
            *counts,
            "",
            f"<details><summary>All {len(rows)} labels</summary>",
            "",
            "| model | head | label | score (control) | effect (control) | left out (control) | does |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            "</details>",
        ]
    )


def _counts(name: str, found: Profile) -> str:
    """A row of the first table. Labels that need an effect are given by more than weights."""
    given = found.given[found.given["label"].isin([kind.name for kind in LOOKED_FOR])]
    does = given["does"].value_counts()
    claims = given[given["label"].isin([kind.name for kind in LOOKED_FOR if kind.does])]
    cells = [
        len(given),
        *(does.get(verdict, 0) for verdict in ("raises", "lowers", "nothing", "moves")),
        len(claims),
        int((~claims["earned"]).sum()),
    ]
    return f"| `{name}` | {' | '.join(map(str, cells))} |"


def _verdicts_of(name: str, found: Profile) -> list[str]:
    """The rows of the second table."""
    rows = []
    for kind in KINDS:
        mine = found.given[found.given["label"] == kind.name].sort_values("score", ascending=False)
        for row in mine.to_dict("records"):
            unit = "" if row["measure"] == "logit" else " of the length"
            cells = [
                f"`{name}`",
                head_label((row["layer"], row["head"])),
                kind.title,
                f"{row['score']:.2f} ({row['control']:.2f})",
                _change(row["effect"], row["effect_spread"], row["effect_control"]),
                _change(row["left_out"], row["left_out_spread"], row["left_out_control"], unit),
                row["does"],
            ]
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def _change(mean: float, spread: float, control: float, unit: str = "") -> str:
    """ "−2.81 ± 0.20 (+0.03)"; "–" where nobody asked."""
    if np.isnan(mean):
        return "–"
    beside = "" if np.isnan(control) else f" ({signed(f'{control:+.2f}')})"
    return f"{signed(f'{mean:+.2f}')} ± {spread:.2f}{unit}{beside}"


if __name__ == "__main__":
    write_whole(PAGE, card().encode())
    write_whole(GUIDE, guide(GUIDE.read_text(encoding="utf-8")).encode())
