"""The labels that a profile gives to heads, in words with their numbers."""

import numpy as np
import pandas as pd

from model.nn.places import Head
from model.profile import Profile
from model.profile.battery import KINDS

TITLES = {kind.name: kind.title for kind in KINDS}
MEANINGS = {kind.name: kind.meaning for kind in KINDS}


def given_labels(found: Profile) -> pd.DataFrame:
    """The labels that heads of a profile have, the highest score first."""
    labels = found.labels
    return labels[labels["given"]].sort_values("score", ascending=False, kind="stable")


def labels_of(given: pd.DataFrame, head: Head) -> list[str]:
    """The labels of one head: "previous token 0.98 (control 0.02; over the text 0.83)"."""
    mine = given[(given["layer"] == head[0]) & (given["head"] == head[1])]
    return [f"{TITLES[row['label']].lower()} {evidence_of(row)}" for _, row in mine.iterrows()]


def evidence_of(row: pd.Series) -> str:
    """The numbers behind one label: "0.98 (control 0.02; over the text 0.83)"."""
    names = {"control": "control", "corpus": "over the text"}
    beside = [f"{said} {row[name]:.2f}" for name, said in names.items() if not np.isnan(row[name])]
    return f"{row['score']:.2f} ({'; '.join(beside)})" if beside else f"{row['score']:.2f}"
