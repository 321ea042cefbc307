"""A profile that is open: its heads as a table, one head's curves and examples, and percentiles."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from model.nn.places import Head
from model.profile import opening, store
from model.profile.battery.kinds import BY_NAME, KINDS
from model.profile.examples import CRITERIA, ROW
from model.profile.searching import search
from model.profile.sums import ENTROPY_STEP, MAP, SHARES, Sums, fields
from model.profile.tables import ProfileScope, no_labels
from model.profile.token_classes import CLASSES
from model.system.border import at_border
from model.trace.arrays import Wide

Between = tuple[float, float]  # at least and at most


@dataclass(frozen=True, eq=False)
class Profile:
    """What each head of a model did over a corpus. Two over parts of one corpus add up to that of both.

    >>> from model.profile import open_profile, profile
    >>> letters = profile("induction", "letters.txt", "letters")
    >>> letters.save("again")
    >>> head = ("decoder.1.self", 0)
    >>> letters.by_distance(head).shape, letters.by_class(head).shape, letters.label(head)
    ((95,), (7, 7), 'induction')
    >>> least, most = letters.percentile(head, 0.5)
    >>> least <= most, letters.entropy_percentile(head, 0.5)[0] <= 1
    (True, True)
    >>> letters.examples(head, "weight").columns[:3].tolist()
    ['score', 'window', 'query']
    >>> len(letters.labels) >= len(letters.given)
    True
    >>> "text" in open_profile("again").search("A"), letters.mean_map(head).shape
    (True, (16, 16))
    """

    about: ProfileScope
    sums: Sums
    texts: Mapping[int, str]  # of the windows that examples stand in
    asked: pd.DataFrame = field(default_factory=no_labels)  # by the battery; the same in each part
    folder: Path | None = None  # where it was opened

    def __repr__(self) -> str:
        of = f"{self.about.model} over {self.about.corpus_name}"
        return f"<Profile of {of}: {self.sums.tokens:,} tokens, {len(self.sums.heads)} heads>"

    def __add__(self, other: "Profile") -> "Profile":
        """Raises ValueError for profiles of another model, corpus or setting, or over the same windows."""
        if self.about.subject != other.about.subject:
            raise ValueError("These profiles are of another model, corpus or setting.")
        done = joined((*self.about.done, *other.about.done))
        if sum(map(_length, done)) != sum(map(_length, (*self.about.done, *other.about.done))):
            raise ValueError("Some windows are in both profiles: they would count twice.")
        skipped = tuple(sorted({*self.about.skipped, *other.about.skipped}))
        versions = tuple(sorted({*self.about.versions, *other.about.versions}))
        sums = self.sums + other.sums
        texts = {**self.texts, **other.texts}
        kept = {
            int(number): texts[int(number)] for number in np.unique(sums.examples.rows["window"])
        }
        asked = self.asked if len(self.asked) else other.asked
        about = replace(self.about, done=done, skipped=skipped, versions=versions)
        return Profile(about, sums, kept, asked)

    @at_border
    def save(self, folder: str | Path) -> None:
        """Writes it as a folder of Parquet files."""
        store.write(Path(folder), self.about, self.sums, self.texts, self.asked)

    @property
    def windows_done(self) -> int:
        """Those that count, and those that could not be read."""
        return sum(map(_length, self.about.done))

    @property
    def heads(self) -> pd.DataFrame:
        """One row a head: `layer` ("decoder.1.self"), `head`, the mean weights self, previous, next, first,
        same, induction, punctuation and delimiter of the rows that could give it (NaN where none could),
        `entropy` (nats), the mean of a row's, `distance` (tokens), the mean by weight, `carried` (weight ·
        |value · W_O|, summed over a row), and `effect` on the logit of the next token, above that on the
        mean logit."""
        columns: dict[str, object] = {
            "layer": [name for name, _ in self.sums.heads],
            "head": [head for _, head in self.sums.heads],
        }
        columns |= {share: self._mean(share, f"{share}_rows") for share in SHARES}
        columns["entropy"] = self._mean("entropy", "rows")
        columns["distance"] = self._distance()
        columns["carried"] = self._mean("carried", "rows")
        columns["effect"] = self._mean("effect", "effect_rows")
        return pd.DataFrame(columns)

    @property
    def labels(self) -> pd.DataFrame:
        """One row a head and label, as `battery.labels` makes them: where it looks (`score`, `control`,
        `prompts`, `given`, `against`, `reason`), and what it does (`effect`, `left_out`, each with its
        `…_spread` and `…_control`, `measure`, `does`, `effect_reason`); and `corpus`: the mean weight on such
        keys over the corpus (of "delimiter" the larger one of punctuation and delimiter); NaN for a label
        that a corpus cannot show. No rows where no model was asked."""
        heads = self.heads
        columns = [heads[list(kind.shares)].max(axis=1).to_numpy(float) for kind in KINDS]
        return self.asked.assign(corpus=np.stack(columns, 1).ravel()[: len(self.asked)])

    @property
    def given(self) -> pd.DataFrame:
        """The rows of `labels` that heads get, those first that they earn by what they do as well
        (`HeadKind.is_earned`), and among these the highest score first. One column more: `earned`."""
        return _given(self.labels)

    @at_border
    def label(self, head: Head) -> str | None:
        """The name of a head: of the labels that it gets, the first one that it earns by what it does, else
        the one with the highest score."""
        self._at(head)
        mine = (self.asked["layer"] == head[0]) & (self.asked["head"] == head[1])
        given = _given(self.asked[mine])
        return None if given.empty else str(given["label"].iloc[0])

    @at_border
    def by_distance(self, head: Head) -> Wide:
        """(2 · window − 1,): the mean weight of a row by query − key, from −(window − 1) on."""
        at = self._at(head)
        return self._number("by_offset")[at] / self._number("rows")[at]

    @at_border
    def mean_map(self, head: Head) -> Wide:
        """(16, 16): the mean weights of the windows, each divided into 16 parts of its queries and keys."""
        at = self._at(head)
        windows = self._number("map_windows")[at]
        if not windows:
            raise ValueError(f"No window has {MAP} tokens, so there is no mean map.")
        return (self._number("map")[at] / windows).reshape(MAP, MAP)

    @at_border
    def by_class(self, head: Head) -> pd.DataFrame:
        """(class of the query, class of the key): mean weight of a row; NaN for a class without rows."""
        at = self._at(head)
        sums = self._number("classes")[at].reshape(len(CLASSES), -1)
        with np.errstate(invalid="ignore"):
            shares = sums / self._number("class_rows")[at][:, None]
        return pd.DataFrame(shares, index=list(CLASSES), columns=list(CLASSES))

    @at_border
    def percentile(self, head: Head, weight: float) -> Between:
        """The share, 0 to 1, of this head's weights that are smaller: at least and at most, because they are
        counted in bins, eight from each power of two to the next."""
        bits = math.nan if math.isnan(weight) else int(np.float32(weight).view(np.int32))
        return self._smaller("weights", head, bits / 2**20)

    @at_border
    def entropy_percentile(self, head: Head, entropy: float) -> Between:
        """The share, 0 to 1, of this head's rows with a smaller entropy (nats): at least and at most, because
        they are counted in bins of 0.05 nats."""
        return self._smaller("entropies", head, entropy / ENTROPY_STEP)

    def _smaller(self, name: str, head: Head, place: float) -> Between:
        """place: in bins, from the start of the first. The last bin has no end."""
        if math.isnan(place):
            raise ValueError("NaN is neither larger nor smaller than other numbers.")
        counts = self.sums.numbers[name][self._at(head)]
        least = counts[: min(int(place), len(counts) - 1)].sum() / max(1, counts.sum())
        return float(least), float(counts[: math.ceil(place)].sum() / max(1, counts.sum()))

    @at_border
    def examples(self, head: Head, criterion: str = "weight") -> pd.DataFrame:
        """The strongest examples of a head by "weight", "carried" or "effect", or some by "chance":
        `score`, `text`, `query`, `key` (positions in it), `query_token`, `key_token` (their first letters),
        `weight`, the best first. Raises ValueError for
        another criterion."""
        if criterion not in CRITERIA:
            raise ValueError(f"{criterion!r} is no criterion; there are {', '.join(CRITERIA)}.")
        rows = self.sums.examples.rows
        mine = rows[
            (rows["head"] == self._at(head)) & (rows["criterion"] == CRITERIA.index(criterion))
        ]
        table = pd.DataFrame(
            {name: mine[name] for name in ROW.names or () if name not in ("head", "criterion")}
        )
        return table.assign(text=[self.texts[int(number)] for number in mine["window"]])

    @at_border
    def search(
        self, text: str, head: Head | None = None, criterion: str | None = None
    ) -> pd.DataFrame:
        """The examples whose token under the query or the key contains a text (`searching.search`).

        Args:
            text: whatever its case.
            head, criterion: only theirs; None: all.

        Raises ValueError for a profile that was not opened from a folder.
        """
        if self.folder is None:
            raise ValueError("This profile is in no folder yet: save it and open it.")
        return search(self.folder, text, head, criterion)

    def _at(self, head: Head) -> int:
        try:
            return self.sums.heads.index(head)
        except ValueError:
            raise ValueError(f"The profile has no head {head[1]} of {head[0]}.") from None

    def _number(self, name: str) -> Wide:
        """(head, size), or (head,) for a single number: in its own unit."""
        numbers = self.sums.numbers[name] / 2.0 ** fields(self.sums.window)[name].bits
        return numbers[:, 0] if numbers.shape[1] == 1 else numbers

    def _mean(self, name: str, rows: str) -> Wide:
        with np.errstate(invalid="ignore"):
            return np.asarray(self._number(name) / self._number(rows))

    def _distance(self) -> Wide:
        """(head,): the mean |query − key| by weight; NaN across two texts."""
        offsets = np.abs(np.arange(2 * self.sums.window - 1) - (self.sums.window - 1))
        weights = self._number("by_offset")
        with np.errstate(invalid="ignore"):
            return np.asarray((weights @ offsets) / weights.sum(1))


def _given(labels: pd.DataFrame) -> pd.DataFrame:
    given = labels[labels["given"]]
    pairs = zip(given["label"], given["does"], strict=True)
    earned = np.array([BY_NAME[label].is_earned(does) for label, does in pairs], bool)
    order = ["earned", "score"]
    return given.assign(earned=earned).sort_values(order, ascending=False, kind="stable")


def joined(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Ranges of numbers in order, those that touch or overlap as one."""
    made: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if made and first <= made[-1][1]:
            made[-1] = made[-1][0], max(end, made[-1][1])
        else:
            made.append((first, end))
    return tuple(made)


def _length(one: tuple[int, int]) -> int:
    return one[1] - one[0]


@at_border
def open_profile(folder: str | Path) -> Profile:
    """The profile of a folder. Raises ValueError where there is none, or a damaged one.

    >>> from model.profile import open_profile, profile
    >>> letters = profile("induction", "letters.txt", "letters")
    >>> letters = open_profile("letters")
    >>> len(letters.heads), list(letters.heads.columns[:5])
    (8, ['layer', 'head', 'self', 'previous', 'next'])
    """
    return Profile(*opening.read(Path(folder)), Path(folder))
