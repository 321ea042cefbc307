"""The labels that a profile gives to heads, in words with their numbers: where a head looks, and what it
does."""

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from model.nn.places import Head
from model.profile import Profile
from model.profile.battery import KINDS
from viz.notation.numbers import signed
from viz.notation.words import sentences_of

say = sentences_of("notation.head_labels")

KIND = {kind.name: kind for kind in KINDS}
TITLES = {kind.name: kind.title for kind in KINDS}
MEANINGS = {kind.name: kind.meaning for kind in KINDS}
# On a tile, which has room for nine letters.
SHORT = {kind.name: kind.title.partition(" ")[0].lower() for kind in KINDS} | {
    "names": "names",
    "negative_names": "neg. name",
    "copy_suppression": "suppress",
}
Row = Mapping[Any, Any]  # of a profile's labels
# The verdict of a label, after an arrow: by what is measured.
VERDICTS = {
    ("logit", "raises"): say("head_raises"),
    ("logit", "lowers"): say("head_lowers"),
    ("logit", "nothing"): say("head_nothing"),
    ("moved", "moves"): say("head_matters_more"),
    ("moved", "nothing"): say("head_matters_more_elsewhere"),
}


@lru_cache(maxsize=8)
def given_labels(found: Profile) -> pd.DataFrame:
    """The labels that heads of a profile have, in the order of `Profile.given`."""
    return found.given


@lru_cache(maxsize=8)
def labels_by_head(found: Profile) -> Mapping[Head, list[str]]:
    """The labels of each head that has some: "previous token 0.98 (control 0.02; over the text 0.83)"."""
    labels = defaultdict(list)
    for row in given_labels(found).to_dict("records"):
        labels[row["layer"], row["head"]].append(
            f"{TITLES[row['label']].lower()} {evidence_of(row)}"
        )
    return dict(labels)


@lru_cache(maxsize=8)
def labels_in_words(found: Profile) -> Mapping[Head, str]:
    """Of each head with a label its first one with both verdicts, and the others in short."""
    words: dict[Head, str] = {}
    for row in given_labels(found).to_dict("records"):
        head = row["layer"], row["head"]
        if head not in words:
            words[head] = f"{TITLES[row['label']].lower()}. {verdicts_in_words(row)}"
    return {
        head: f"{first} Also {'; '.join(others)}."
        if (others := labels_by_head(found)[head][1:])
        else first
        for head, first in words.items()
    }


def evidence_of(row: Row) -> str:
    """The numbers behind one label: "0.98 (control 0.02; over the text 0.83; without it −1.20 ± 0.05)"."""
    names = {"control": "control", "corpus": "over the text"}
    beside = [f"{said} {row[name]:.2f}" for name, said in names.items() if not np.isnan(row[name])]
    if not np.isnan(change := row["left_out"]):
        form = "+.2f" if row["measure"] == "logit" else ".2f"
        beside.append(f"without it {signed(format(change, form))} ± {row['left_out_spread']:.2f}")
    return f"{row['score']:.2f} ({'; '.join(beside)})" if beside else f"{row['score']:.2f}"


def verdicts_in_words(row: Row) -> str:
    """Two sentences: "Looks: 0.61 of the last token’s weight on the other name (control 0.12). Does: without
    it the name’s lead falls by 2.81 ± 0.20 (control −0.03) → the head raises it." """
    control = "" if np.isnan(row["control"]) else f" (control {row['control']:.2f})"
    return f"Looks: {row['score']:.2f} of {KIND[row['label']].looks}{control}. {_does(row)}"


def _does(row: Row) -> str:
    verdict = VERDICTS.get((row["measure"], row["does"]))
    if verdict is None:
        return f"Does: not known. {row['effect_reason']}".rstrip()
    answer, by_pass = KIND[row["label"]].answer, not np.isnan(row["left_out"])
    name = "left_out" if by_pass else "effect"
    change, control = row[name], row[f"{name}_control"]
    size = abs(change) if by_pass else change
    numbers = f"{signed(f'{size:.2f}')} ± {row[f'{name}_spread']:.2f}"
    if row["measure"] == "moved":
        said = say("without_last_vectors", numbers=numbers)
    elif by_pass:
        moves = f"{'falls' if change < 0 else 'rises'} by" if round(size, 2) else "moves by"
        said = f"without it {answer} {moves} {numbers}"
    else:
        said = say("directly_adds", numbers=numbers, answer=answer)
    of = "other rows" if row["measure"] == "moved" else "control"
    form = ".2f" if row["measure"] == "moved" else "+.2f"
    known = "" if np.isnan(control) else f" ({of} {signed(format(control, form))})"
    return f"Does: {said}{known} → {verdict}."
