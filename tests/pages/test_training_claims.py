"""Claims among the experiments: the words and curves are those of the runs that ship."""

import re

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from model.training import claims
from model.training.claims import CLAIMS
from tests.pages.reading import choose, said, traces, visit
from viz.notation.labels import WORD_JOINER
from viz.notation.theme import MASKED
from viz.views.experiments.claims import VERDICTS


def curves(app: AppTest) -> dict[str, dict]:
    """The named lines of the picture."""
    return {line["name"]: line for line in traces(app) if "name" in line}


def bands(app: AppTest) -> list[dict]:
    return [trace for trace in traces(app) if trace.get("fill") == "toself"]


def summary(app: AppTest) -> pd.DataFrame:
    """What was measured at the end, by variant, as it is read."""
    (table,) = (table.value for table in app.table)
    return table.map(unescaped).rename(index=unescaped)


def unescaped(written: str) -> str:
    return written.replace("\\", "").replace(WORD_JOINER, "")


def test_each_claim_is_drawn_and_told_from_the_runs_that_ship() -> None:
    app = visit("experiments", show="Claims")
    runs, by_processor = claims.shipped_runs(), claims.runs_by_processor()
    for claim in CLAIMS:
        choose(app, "Claim", claim.title)
        words, drawn = said(app), curves(app)
        assert "nan" not in words
        for name, variant in claim.variants.items():
            ends = [history[-1][claim.measure] for history in runs[variant].values()]
            low, mean, high = min(ends), sum(ends) / len(ends), max(ends)
            row = summary(app).loc[name]
            assert row.iloc[0] == f"{mean:.3f}"
            assert row["seeds"] == f"{low:.3f} to {high:.3f}"
            anew = [history[-1][claim.measure] for history in by_processor[variant].values()]
            assert row["seed 2, by processor"] == f"{min(anew):.3f} to {max(anew):.3f}"
            assert drawn[name]["y"][-1] == pytest.approx(mean)
            assert drawn[name]["customdata"][-1] == pytest.approx([low, high])
            turn = len(drawn[name]["x"])  # a band goes along the lowest and back along the highest
            assert [low, high] in [band["y"][turn - 1 : turn + 1] for band in bands(app)]
        counts = []
        for first, second in claim.better:
            order = "higher" if claim.measure == "repeat_accuracy" else "lower"
            won = []
            for trained in (runs, by_processor):
                ends = [
                    [
                        history[-1][claim.measure]
                        for history in trained[claim.variants[name]].values()
                    ]
                    for name in (first, second)
                ]
                better = (a > b if order == "higher" else a < b for a, b in zip(*ends, strict=True))
                won.append(sum(better))
            counts.append(won[0])
            told = summary(app).loc[first, "claimed order"]
            assert re.search(
                rf"{order} than “{re.escape(second)}” \D*{won[0]} of 4 \D*{won[1]} of 3 ", told
            )
            if len(counts) == len(claim.variants) // 2 == len(claim.better) and not claim.beside:
                assert drawn[first]["line"]["color"] == drawn[second]["line"]["color"]
                assert drawn[second]["line"]["dash"] == "dash"
        assert (VERDICTS["supported"] in words) == (set(counts) == {4})
        assert (VERDICTS["contradicted"] in words) == (set(counts) == {0})
        colours = {line["line"]["color"] for line in drawn.values()}
        assert MASKED not in colours
        begin = next(iter(drawn.values()))["x"][0]
        assert begin <= 120  # at least the last two thirds are drawn
        assert (f"begins at step {begin};" in words) == (begin > 0)
