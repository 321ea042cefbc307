"""What the explorer derives in the browser is what the trace derives in Python, number by number."""

import base64
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page

from model import Model, Trace
from model.analysis.stream.around_heads import AroundHeads
from model.nn.masks import window_mask
from model.trace.records import Attention
from tests.model import hub_models, tiny
from tests.model.snippets.snippet_cases import TEXTS, around, unit
from tests.viz.explorer.records import grouped, labels, record, sent
from tests.viz.explorer.records_of_today import LATER, closed
from viz.explorer import payload
from viz.explorer.packing import packed
from viz.notation.labels import tick_positions
from viz.notation.numbers import difference

TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}
DERIVE = """async ([block, head]) => {
    const { decodeLayer, deriveHead } = await import("/derive.js");
    const { unpacked } = await import("/message.js");
    const sent = Uint8Array.from(atob(block), (letter) => letter.charCodeAt(0));
    const derived = deriveHead(decodeLayer(unpacked(sent).layer), head);
    const names = ["query", "key", "value", "recorded", "scores", "scaled", "capped", "biased", "masked"];
    names.push("weights", "sinkWeights", "output");
    return Object.fromEntries(names.map((name) => [name, Array.from(derived[name])]));
}"""


AROUND = """async (block) => {
    const { layersOf } = await import("/held.js");
    const { deriveHead } = await import("/derive.js");
    const { aroundNumbers, headTerms } = await import("/around.js");
    const { unpacked } = await import("/message.js");
    const message = unpacked(Uint8Array.from(atob(block), (letter) => letter.charCodeAt(0)));
    const { layer } = layersOf(message);
    const cell = { head: 1, query: 3, key: 1, dimension: 5 };
    const derived = deriveHead(layer, cell.head);
    const made = {};
    for (const stage of message.stages.filter(({ group }) => group)) {
        for (const name of [stage.name, `before_${stage.name}`]) {
            if (derived[name]) made[name] = Array.from(derived[name]);
        }
        made[`numbers of ${stage.name}`] = aroundNumbers(stage, layer, derived, cell, "index");
    }
    return { ...made, terms: headTerms(layer, cell, "index") };
}"""


@pytest.fixture
def derived(modules: Page) -> Callable[[Attention, int], dict[str, NDArray[np.float32]]]:
    def derive(attention: Attention, head: int) -> dict[str, NDArray[np.float32]]:
        got = modules.evaluate(DERIVE, [sent(attention), head])
        return {name: np.asarray(values, np.float32) for name, values in got.items()}

    return derive


@pytest.mark.parametrize("mask_value", [-math.inf, -1e9, -1e20, 0.0])
@pytest.mark.parametrize(
    "attention",
    [
        record(6, kind="causal"),
        record(6, kind="self"),
        record(6, kind="self", scale=1.0),
        record(6, kind="self", scale=-0.3),
        record(1),
        record(5, 9, kind="cross"),
        record(9, 5, kind="cross", mask=np.random.default_rng(3).random((9, 5)) > 0.4),
        record(6, mask=closed([0, 3])),
        record(6, mask=closed(list(range(6)))),
        record(40, heads=2, width=64, seed=4),
        grouped(record(6, heads=6)),
        record(9, mask=window_mask(9, 9, 3, causal=True).numpy()),
        record(9, kind="self", mask=window_mask(9, 9, 4, causal=False).numpy()),
        *LATER.values(),
    ],
    ids=[
        *(
            "causal",
            "open",
            "unscaled",
            "negative",
            "one",
            "cross",
            "holes",
            "rows",
            "all",
            "large",
            "grouped",
            "window",
            "both-ways",
        ),
        *LATER,
    ],
)
def test_every_stage_equals_the_traces(
    attention: Attention, mask_value: float, derived: Callable[..., dict[str, NDArray[np.float32]]]
) -> None:
    attention = replace(attention, mask_value=mask_value)
    for head in (0, attention.heads - 1):
        got = derived(attention, head)
        for name in ("query", "key", "value"):
            assert np.array_equal(got[name], getattr(attention, name)[head].ravel())
        assert np.array_equal(got["recorded"], attention.output[head].ravel())
        for name, expected in {
            "scores": attention.scores(head),
            "scaled": attention.scaled(head),
            "capped": attention.capped(head),
            "biased": attention.biased(head),
            "masked": attention.masked(head),
            "weights": attention.weights(head),
            "sinkWeights": attention.sink_weights(head),
            "output": attention.context(head),
        }.items():
            np.testing.assert_allclose(got[name], expected.ravel(), **TOLERANCE, err_msg=name)


def test_a_row_whose_every_key_is_masked_is_all_zeros_and_no_number_is_lost(
    derived: Callable[..., dict[str, NDArray[np.float32]]],
) -> None:
    got = derived(record(6, mask=closed([2])), 1)
    assert np.array_equal(got["weights"].reshape(6, 6)[2], np.zeros(6))
    assert np.array_equal(got["output"].reshape(6, 8)[2], np.zeros(8))
    assert not any(np.isnan(values).any() for values in got.values())


def test_each_head_may_have_its_own_mask(
    derived: Callable[..., dict[str, NDArray[np.float32]]],
) -> None:
    mask = np.random.default_rng(5).random((3, 6, 6)) > 0.5
    attention = replace(record(6), own_mask=mask, look_ahead=False)
    for head in range(3):
        expected = record(6, mask=mask[head]).weights(head)
        np.testing.assert_allclose(
            derived(attention, head)["weights"], expected.ravel(), **TOLERANCE
        )


def test_dropout_mixes_the_values_with_the_weights_as_applied(modules: Page) -> None:
    attention = record(5)
    weights = np.stack([attention.weights(head) for head in range(3)])
    factors = (np.random.default_rng(0).random(weights.shape) > 0.5) * np.float32(2)
    dropped = (weights * factors).astype(np.float32)
    steps = {"weights": weights, "dropped": dropped}
    output = np.asarray(
        modules.evaluate(DERIVE, [sent(replace(attention, steps=steps)), 2])["output"]
    )
    np.testing.assert_allclose(output, (dropped[2] @ attention.value[2]).ravel(), **TOLERANCE)


def test_a_weight_set_by_hand_is_that_and_the_others_share_what_is_left(
    derived: Callable[[Attention, int], dict[str, NDArray[np.float32]]],
) -> None:
    cells = ((1, 3, 2, 0.25), (1, 3, 0, 0.5), (1, 4, 1, 1.0), (2, 0, 0, 0.0))
    attention = replace(record(5), weights_set=cells)
    for head in range(3):
        expected = attention.weights(head)
        np.testing.assert_allclose(
            derived(attention, head)["weights"], expected.ravel(), **TOLERANCE
        )
    assert attention.weights(1)[3, 2] == 0.25


def test_entropy_and_largest_weight_of_rows_and_their_means(modules: Page) -> None:
    attention = record(6, mask=closed([3]))
    weights = attention.weights(0).astype(np.float64)
    got = modules.evaluate(
        """async ([values, query]) => {
            const { spread } = await import("/derive.js");
            return spread(Float32Array.from(values), 6, 6, query);
        }""",
        [weights.ravel().tolist(), 4],
    )
    entropies = [-sum(w * math.log(w) for w in row if w > 0) for row in weights]
    assert got["entropy"] == pytest.approx(entropies[4], abs=1e-6)
    assert got["meanEntropy"] == pytest.approx(np.mean(entropies), abs=1e-6)
    assert got["largest"] == pytest.approx(weights[4].max())
    assert got["meanLargest"] == pytest.approx(weights.max(-1).mean())


def test_ticks_are_thinned_by_the_same_law_as_in_python(modules: Page) -> None:
    cases = [(count, limit) for count in (0, 1, 5, 32, 33, 64, 65, 1000) for limit in (1, 7, 32)]
    got = modules.evaluate(
        """async (cases) => {
            const { tickPositions } = await import("/geometry.js");
            return cases.map(([count, limit]) => tickPositions(count, limit));
        }""",
        cases,
    )
    assert got == [list(tick_positions(count, limit)) for count, limit in cases]


def test_a_bound_is_rounded_up_as_in_python(modules: Page) -> None:
    values = [
        0.0,
        1.49e-6,
        7e-7,
        9.01e-7,
        0.5,
        *(10 ** np.random.default_rng(0).uniform(-12, 0, 200)),
    ]
    said = modules.evaluate(
        """async (values) => {
            const { magnitude } = await import("/numbers.js");
            return values.map(magnitude);
        }""",
        values,
    )
    assert said == [difference(value) for value in values]
    assert said[1] == "2e−6"


@pytest.mark.parametrize("name", ["house-gpt", "minilm", "translate-en-fr", "llama", "qwen3"])
def test_what_stands_around_the_heads_is_the_models_own(
    modules: Page, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions, norm, outputs side by side, and what is written: all as the pass recorded it."""
    monkeypatch.setattr("viz.explorer.message.LIGHT_AROUND", 10**8)
    model, trace, attention = around_case(name)
    queries, keys = attention.query.shape[1], attention.key.shape[1]
    message = payload(
        attention,
        queries=labels(queries),
        keys=labels(keys),
        head=0,
        check=0.0,
        around=[AroundHeads(model, trace, attention)],
    )
    got = modules.evaluate(AROUND, base64.b64encode(packed(message)).decode())
    case = (model, trace, attention)
    stages = ["positions", "norm", "concatenated", "written"]
    for stage in [*stages, *(["query_norm", "key_norm"] if attention.projection.normed else [])]:
        expected = around(case, stage, 1)
        size = unit(case, stage, 1)
        np.testing.assert_allclose(got[stage], expected.ravel(), atol=1e-5 * size, err_msg=stage)
        filled = got[f"numbers of {stage}"]
        chosen = expected[1 if stage == "key_norm" else 3, 5]
        assert filled["value"] == pytest.approx(chosen, abs=1e-5 * size)
        if "unit" in filled:  # of a norm: the filled formula gives its result
            made = filled["gamma"] * filled["unit"] + filled["beta"]
            assert made == pytest.approx(chosen, abs=1e-5 * size)
    terms, size = got["terms"], unit(case, "written", 1)
    for term in terms["list"]:
        part = model.head_output(attention, term["head"])[3, 5]
        assert term["product"] == pytest.approx(part, abs=1e-5 * size)
    total = sum(term["product"] for term in terms["list"]) + terms["bias"]
    assert total == pytest.approx(around(case, "written", 1)[3, 5], abs=1e-5 * size)
    if attention.projection.turned:
        before = np.reshape(got["before_positions"], attention.query[1].shape)
        # A turn leaves lengths as they are, and row 0 altogether.
        np.testing.assert_allclose(before[0], attention.query[1][0], atol=1e-5)
        assert not np.allclose(before[3], attention.query[1][3], atol=1e-2)
        np.testing.assert_allclose(
            np.linalg.norm(before, axis=1), np.linalg.norm(attention.query[1], axis=1), rtol=1e-5
        )


def around_case(name: str) -> tuple[Model, Trace, Attention]:
    """A layer of a shipped model, or of a small one of a family of the hub."""
    model = tiny.loaded(name) if name in TEXTS else hub_models.loaded(name)
    trace = model.trace(TEXTS.get(name, hub_models.TEXT))
    return model, trace, trace.attention[-1]


def test_a_planted_fault_would_be_seen(modules: Page) -> None:
    """The comparison above fails when the browser divides by the wrong root."""
    attention = record(6)
    wrong = replace(attention, scale=attention.scale * 1.001)
    got = modules.evaluate(DERIVE, [sent(wrong), 0])
    assert not np.allclose(got["scaled"], attention.scaled(0).ravel(), **TOLERANCE)
