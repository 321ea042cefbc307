"""The card of the shipped profiles, docs/profiles-card.md. `python -m tools.profiles_card` writes it."""

from pathlib import Path

from model.nn.places import head_label
from model.profile import Profile, open_profile
from model.profile.battery import KINDS
from model.profile.shipped import Made, made, shipped_profiles

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


if __name__ == "__main__":
    PAGE.write_text(card(), encoding="utf-8")
