"""The labels that a profile gives to heads, in words with their numbers."""

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from model.nn.places import Head
from model.profile import Profile
from model.profile.battery import KINDS

TITLES = {kind.name: kind.title for kind in KINDS}
MEANINGS = {kind.name: kind.meaning for kind in KINDS}


@lru_cache(maxsize=8)
def given_labels(found: Profile) -> pd.DataFrame:
    """The labels that heads of a profile have, the highest score first."""
    labels = found.labels
    return labels[labels["given"]].sort_values("score", ascending=False, kind="stable")


@lru_cache(maxsize=8)
def labels_by_head(found: Profile) -> Mapping[Head, list[str]]:
    """The labels of each head that has some: "previous token 0.98 (control 0.02; over the text 0.83)"."""
    labels = defaultdict(list)
    for row in given_labels(found).to_dict("records"):
        labels[row["layer"], row["head"]].append(
            f"{TITLES[row['label']].lower()} {evidence_of(row)}"
        )
    return dict(labels)


def evidence_of(row: Mapping[Any, Any]) -> str:
    """The numbers behind one label: "0.98 (control 0.02; over the text 0.83)"."""
    names = {"control": "control", "corpus": "over the text"}
    beside = [f"{said} {row[name]:.2f}" for name, said in names.items() if not np.isnan(row[name])]
    return f"{row['score']:.2f} ({'; '.join(beside)})" if beside else f"{row['score']:.2f}"
