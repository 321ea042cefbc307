"""Claims on the training page: the words and curves are those of the runs that ship."""

import pytest
from streamlit.testing.v1 import AppTest

from model.training import experiments
from model.training.claims import CLAIMS
from tests.pages.reading import choose, said, traces, visit


def curves(app: AppTest) -> dict[str, dict]:
    """The named lines of the picture."""
    return {line["name"]: line for line in traces(app) if "name" in line}


def bands(app: AppTest) -> list[dict]:
    return [trace for trace in traces(app) if trace.get("fill") == "toself"]


def test_each_claim_is_drawn_and_told_from_the_runs_that_ship() -> None:
    app = visit("training", show="Claims")
    runs = experiments.shipped_runs()
    for claim in CLAIMS:
        choose(app, "Which claim", claim.title)
        words, drawn = said(app), curves(app)
        assert "nan" not in words
        for name, variant in claim.variants.items():
            ends = [history[-1][claim.measure] for history in runs[variant].values()]
            low, mean, high = min(ends), sum(ends) / len(ends), max(ends)
            assert f"{mean:.3f} at the last step (seeds {low:.3f} to {high:.3f})" in words
            assert drawn[name]["y"][-1] == pytest.approx(mean)
            assert drawn[name]["customdata"][-1] == pytest.approx([low, high])
            turn = len(drawn[name]["x"])  # a band goes along the lowest and back along the highest
            assert [low, high] in [band["y"][turn - 1 : turn + 1] for band in bands(app)]
        counts = []
        for first, second in claim.better:
            ends = [
                [history[-1][claim.measure] for history in runs[claim.variants[name]].values()]
                for name in (first, second)
            ]
            better = (
                a > b if claim.measure == "repeat_accuracy" else a < b
                for a, b in zip(*ends, strict=True)
            )
            counts.append(sum(better))
            assert f"ends better than {second} in {counts[-1]} of 4 seeds" in words
        assert ("every seed has its order" in words) == (set(counts) == {4})
        assert ("no seed has its order" in words) == (set(counts) == {0})
