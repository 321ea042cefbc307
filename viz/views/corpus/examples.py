"""What the browser gets of some examples: the tokens around each, its weights as far as known, and a link."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np
import pandas as pd

from model.nn.places import Head, head_label
from model.serving.engine import Request
from model.trace.records import Token
from viz.explorer.packing import Json, packed
from viz.notation.labels import token_label
from viz.notation.theme import MASKED, QUANTITIES
from viz.state.link import View, address, opening_link
from viz.state.look import traced
from viz.state.navigation import HOME, entry

if TYPE_CHECKING:
    from model.profile.corpus_profile import Profile
    from model.run.model import Model

THEME: Json = {
    "quantities": {name: asdict(QUANTITIES[name]) for name in ("weight", "query", "key")},
    "masked": MASKED,
}
AROUND = 6  # tokens that are shown on both sides of query and key
LETTERS = 24  # of a token
SEARCHED = 8  # examples that a search finds
BY_CHANCE = 3  # examples that stand below the best
LOOKED_THROUGH = 500  # windows whose tokens a search reads
AT_ONCE = 4e9  # tokens × weights that are run unasked: a fraction of a second


@dataclass(frozen=True)
class CorpusExample:
    """A cell of a head in a window of the corpus."""

    head: Head
    text: str
    query: int
    key: int
    weight: float
    scored: str = ""  # its score in words, where that is another number than the weight


def of_head(head: Head, found: pd.DataFrame, unit: str = "") -> list[CorpusExample]:
    """Of `Profile.examples`. unit: what is said of the score; "": it is the weight, or says nothing."""
    columns = (found[name].tolist() for name in ("text", "query", "key", "weight", "score"))
    return [
        CorpusExample(head, text, query, key, weight, unit and f"{unit} {score:.2f}")
        for text, query, key, weight, score in zip(*columns, strict=True)
    ]


def with_token(
    profile: "Profile", model: "Model", typed: str, head: Head | None
) -> list[CorpusExample]:
    """The strongest examples whose query or key is this token, in any case and with or without a space before
    it; of one head, or of all. Only of heads that look from the text itself to itself."""
    wanted, rows = typed.strip().casefold(), profile.sums.examples.rows
    stack = "encoder" if model.config.shape == "encoder-decoder" else ""
    heads = [
        at
        for at, one in enumerate(profile.sums.heads)
        if head in (None, one) and one[0].startswith(stack)
    ]
    windows = [at for at, text in profile.texts.items() if wanted in text.casefold()]
    near = rows[np.isin(rows["head"], heads) & np.isin(rows["window"], windows)]
    tokens: dict[int, Sequence[Token]] = {}
    found: dict[tuple[object, ...], CorpusExample] = {}
    for row in near[np.argsort(-near["weight"], kind="stable")]:
        at, number, query, key = (int(row[name]) for name in ("head", "window", "query", "key"))
        if number not in tokens:
            if len(tokens) == LOOKED_THROUGH:
                break
            tokens[number] = _tokens(ref(model), profile.texts[number])
        if wanted in {tokens[number][one].text.strip(" ▁").casefold() for one in (query, key)}:
            one = CorpusExample(
                profile.sums.heads[at], profile.texts[number], query, key, float(row["weight"])
            )
            found.setdefault((at, number, query, key), one)
        if len(found) == SEARCHED:
            break
    return list(found.values())


@lru_cache(maxsize=64)
def _tokens(model: "ref[Model]", text: str) -> Sequence[Token]:
    """A window of a corpus, cut once: each run of the page shows its examples again."""
    there = model()
    return () if there is None else there.tokens(text)


def message(
    title: str,
    examples: Iterable[CorpusExample],
    model: "Model",
    *,
    chance: Iterable[CorpusExample] = (),
    runs: bool,
    opens: bool = True,
) -> bytes:
    """chance: some by chance, which stand below. runs: whether the model is run on each text, which gives all
    arcs of a row. opens: whether the examples are of the weights that the explorer shows."""

    def drawn(some: Iterable[CorpusExample]) -> list[Mapping[str, object]]:
        return [_drawn(one, model, runs=runs, opens=opens) for one in some]

    words = {"title": title, "examples": drawn(examples), "chance": drawn(chance)}
    return packed({**words, "theme": THEME})


def runs_at_once(count: int, model: "Model", window: int) -> bool:
    """Whether the passes over so many texts are so short that nobody needs to ask for them."""
    return count * window * model.parameter_count <= AT_ONCE


def _drawn(one: CorpusExample, model: "Model", *, runs: bool, opens: bool) -> Mapping[str, object]:
    """An example's tokens side by side; across two texts the query stands before the keys. The weights of its
    row are not known without a pass."""
    (layer, head), query, key = one.head, one.query, one.key
    tokens: Sequence[Token]
    weights: list[float] | None = None
    if not runs and model.config.shape != "encoder-decoder":
        tokens = _tokens(ref(model), one.text)
    else:
        trace = traced(Request(model.address, one.text), passing=True)
        attention = trace.find(layer)
        tokens = trace.keys_of(attention)
        weights = [float(weight) for weight in attention.weights(head)[query]]
        if attention.kind == "cross":
            tokens = (trace.queries_of(attention)[query], *tokens)
            query, key, weights = 0, key + 1, [0.0, *weights]
    shown = positions(query, key, len(tokens))
    labels = {at: token_label(tokens[at].text, LETTERS) for at in shown}
    row = None if weights is None else [weights[at] for at in shown]
    view = View(one.text, model.address, layer, head, "weights", one.query, one.key)
    return {
        "head": head_label(one.head),
        "shown": shown,
        "tokens": list(labels.values()),
        "query": query,
        "key": key,
        "weight": one.weight,
        "row": row,
        "left": 0.0 if row is None or weights is None else max(0.0, sum(weights) - sum(row)),
        "said": f"{labels[query]} → {labels[key]}",
        "scored": one.scored,
        "href": address(f"/{entry(HOME).address}", opening_link(view)) if opens else "",
    }


def positions(query: int, key: int, count: int) -> list[int]:
    """The tokens that are shown: those around query and key, and those between where they are few."""
    near = {at for middle in (query, key) for at in range(middle - AROUND, middle + AROUND + 1)}
    first, last = sorted((query, key))
    if last - first <= 3 * AROUND:
        near |= set(range(first, last))
    return sorted(at for at in near if 0 <= at < count)
