"""Every number of the table is that of a plain loop over prompts, one pass at a time."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from model import Intervention, Model, Trace
from model.analysis.attribution.patching import patch_map, path_map
from model.analysis.heads import statistics
from model.analysis.stream.steering import direction, steered
from model.many import Prompt, accuracy, logit_difference, loss, measure, patch_all
from model.nn.steering import Steering
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded

CLOSE = 1e-5
IOI = "When {io} and {s} went to the {place}, {s} gave a book to"
NAMES = (("Mary", "John", "house"), ("Tom", "Anna", "garden"), ("Alice", "Peter", "house"))


def ioi(io: str, subject: str, place: str, condition: str = "names") -> Prompt:
    text = IOI.format(io=io, s=subject, place=place)
    roles = {"io": io, "s1": f"and [{subject}]", "s2": f"[{subject}] gave"}
    corrupt = text.replace(f"{subject} gave", f"{io} gave")
    return Prompt(text, condition, roles, (io, subject), corrupt)


PROMPTS = [ioi(*names, condition=f"{at % 2}") for at, names in enumerate(NAMES)]
OTHER_LENGTH = Prompt("Then Rose and David left, and David called", "2", {
    "io": "Rose", "s1": "and [David] left", "s2": "[David] called"}, ("Rose", "David"))  # fmt: skip


@pytest.fixture(scope="module")
def house() -> Model:
    return loaded("house-gpt")


def at(trace: Trace, word: str, number: int = 0) -> int:
    """Where a token stands, by its letters."""
    return [place for place, token in enumerate(trace.tokens) if token.text.strip() == word][number]


def logits_of(model: Model, prompt: Prompt, intervention: Intervention | None = None) -> np.ndarray:
    """(token, vocabulary)"""
    trace = model.trace(prompt.text, intervention=intervention or Intervention())
    return trace.logits.astype(np.float64)


def difference(model: Model, prompt: Prompt, logits: np.ndarray) -> float:
    ids = [model.tokens(f"{prompt.text} {answer}")[-1].id for answer in prompt.answers]
    return float(logits[-1, ids[0]] - logits[-1, ids[1]])


def test_weights_between_roles(house: Model) -> None:
    frame = measure(house, PROMPTS, weights=[("last", "io"), ("s2", "s1"), ("s2", "first")])
    assert len(frame) == len(PROMPTS) * 32 * 3
    rows = iter(frame.itertuples())
    for number, prompt in enumerate(PROMPTS):
        trace = house.trace(prompt.text)
        io, subject = prompt.answers
        places = {"last": len(trace.tokens) - 1, "first": 0, "io": at(trace, str(io))}
        places |= {"s1": at(trace, str(subject)), "s2": at(trace, str(subject), 1)}
        for attention in trace.attention:
            for head in range(attention.heads):
                for query, key in (("last", "io"), ("s2", "s1"), ("s2", "first")):
                    row: Any = next(rows)
                    assert (row.prompt, row.condition) == (number, prompt.condition)
                    assert (row.run, row.layer, row.head) == ("unchanged", attention.name, head)
                    assert (row.query, row.key) == (query, key)
                    weight = attention.weights(head)[places[query], places[key]]
                    assert row.weight == pytest.approx(weight, abs=CLOSE)


def test_from_a_word_is_a_mean_and_to_a_word_is_a_sum(house: Model) -> None:
    text = "The unfathomable key to the incomprehensible door is lost"
    roles = {"a": "unfathomable", "b": "incomprehensible"}
    frame = measure(house, [Prompt(text, roles=roles)], weights=[("b", "a")])
    trace = house.trace(text)
    spans = [(token.span or (0, 0)) for token in trace.tokens]
    inside = {
        role: [
            place
            for place, (start, end) in enumerate(spans)
            if start < text.index(word) + len(word) and end > text.index(word)
        ]
        for role, word in roles.items()
    }
    assert min(map(len, inside.values())) > 1
    for attention in trace.attention:
        weights = attention.weights()[:, inside["b"]][:, :, inside["a"]]
        found = frame[frame["layer"] == attention.name]["weight"]
        assert found.tolist() == pytest.approx(weights.sum(2).mean(1), abs=CLOSE)


STATISTICS: Mapping[str, Callable[[np.ndarray, list[int]], float]] = {
    "previous": lambda weights, _: float(np.diagonal(weights, -1).mean()),
    "self": lambda weights, _: float(np.diagonal(weights).mean()),
    "first": lambda weights, _: float(weights[1:, 0].mean()),
    "distance": lambda weights, _: statistics.distance(weights),
    "entropy": lambda weights, _: float(
        -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1).mean()
    ),
    "induction": lambda weights, ids: float(
        np.mean(
            [
                sum(weights[query, key + 1] for key in range(query) if ids[key] == ids[query])
                for query in range(len(ids))
                if ids[query] in ids[:query]
            ]
        )
    ),
}


def test_statistics_by_name(house: Model) -> None:
    frame = measure(house, PROMPTS, statistics=STATISTICS.keys())
    for number, prompt in enumerate(PROMPTS):
        trace = house.trace(prompt.text)
        ids = [token.id for token in trace.tokens]
        of_prompt = frame[frame["prompt"] == number]
        for name, of in STATISTICS.items():
            expected = [
                of(one.weights(head), ids) for one in trace.attention for head in range(one.heads)
            ]
            assert of_prompt[name].tolist() == pytest.approx(expected, abs=CLOSE)
    with pytest.raises(ValueError, match=r"no statistic 'previus' .*'previous'"):
        measure(house, PROMPTS, statistics=["previus"])


def test_all_rows_of_another_text_look_at_its_first_token() -> None:
    model, text = loaded("translator"), "the cat saw the cat"
    frame, trace = measure(model, [text], statistics=["first"]), model.trace(text)
    for row in frame.to_dict("records"):
        attention = trace.find(row["layer"])
        rows = attention.weights(row["head"])[attention.kind != "cross" :]
        assert row["first"] == pytest.approx(float(rows[:, 0].mean()), abs=1e-6)


def test_a_statistic_that_a_text_has_no_rows_for_is_not_a_number(house: Model) -> None:
    frame = measure(house, ["One two three", PROMPTS[0]], statistics=["induction", "self"])
    assert frame[frame["prompt"] == 0]["induction"].isna().all()
    assert frame[frame["prompt"] == 1]["induction"].notna().all()
    assert frame["self"].notna().all()


def test_one_statistic_may_be_named_alone_and_no_name_stands_for_two_columns(house: Model) -> None:
    alone = measure(house, PROMPTS[:1], statistics="entropy")
    assert alone.equals(measure(house, PROMPTS[:1], statistics=iter(["entropy"])))
    for named in (
        {"statistics": {"weight": lambda weights: 0.0}},
        {"metric": {"head": loss}},
        {"statistics": ["entropy"], "metric": {"entropy": loss}},
    ):
        with pytest.raises(ValueError, match="another column"):
            measure(house, PROMPTS[:1], **named)  # type: ignore[arg-type]


def test_a_statistic_of_the_callers(house: Model) -> None:
    frame = measure(
        house, PROMPTS, statistics={"top": lambda weights: float(weights.max(-1).mean())}
    )
    trace = house.trace(PROMPTS[1].text)
    expected = [one.weights(head).max(-1).mean() for one in trace.attention for head in range(8)]
    assert frame[frame["prompt"] == 1]["top"].tolist() == pytest.approx(expected, abs=CLOSE)


def test_metrics_are_those_of_the_logits(house: Model) -> None:
    free = "The old man went down to the river."
    metrics = {"difference": logit_difference(), "loss": loss, "accuracy": accuracy}
    frame = measure(house, PROMPTS, metric=metrics)
    assert list(frame.columns) == ["prompt", "condition", "run", *metrics]
    for row, prompt in zip(frame.itertuples(), PROMPTS, strict=True):
        logits = logits_of(house, prompt)
        wanted = house.tokens(f"{prompt.text} {prompt.answers[0]}")[-1].id
        chances = torch.tensor(logits[-1]).log_softmax(-1)
        assert row.difference == pytest.approx(difference(house, prompt, logits), abs=CLOSE)
        assert row.loss == pytest.approx(-float(chances[wanted]), abs=CLOSE)
        assert row.accuracy == float(logits[-1].argmax() == wanted)
    (row,) = measure(house, [free], metric={"loss": loss, "accuracy": accuracy}).itertuples()
    ids = torch.tensor([token.id for token in house.tokens(free)])[1:]
    logits = torch.tensor(logits_of(house, Prompt(free)))[:-1]
    assert row.loss == pytest.approx(
        float(torch.nn.functional.cross_entropy(logits, ids)), abs=CLOSE
    )
    assert row.accuracy == float((logits.argmax(-1) == ids).double().mean())


def test_a_metric_is_a_function_of_a_trace(house: Model) -> None:
    def tokens(trace: Trace) -> float:
        return float(len(trace.tokens))

    frame = measure(house, PROMPTS, metric=tokens)
    assert frame["tokens"].tolist() == [len(house.tokens(one.text)) for one in PROMPTS]
    assert "metric" in measure(house, PROMPTS, metric=lambda trace: 1.0).columns
    mine = (
        house.tokens(f"{PROMPTS[0].text} Mary")[-1].id,
        house.tokens(f"{PROMPTS[0].text} home")[-1].id,
    )
    by_words = measure(house, PROMPTS, metric=logit_difference("Mary", "home"))
    by_ids = logit_difference(*mine)
    expected = [by_ids(house.trace(one.text)) for one in PROMPTS]
    assert by_words["logit_difference"].tolist() == pytest.approx(expected, abs=CLOSE)
    with pytest.raises(ValueError, match="not words"):
        logit_difference("Mary", "home")(house.trace("The"))
    with pytest.raises(ValueError, match="needs 2 answers"):
        logit_difference()(house.trace("The"))
    with pytest.raises(ValueError, match="two answers, or none"):
        logit_difference("Mary")


def test_everything_is_taken_with_and_without_an_intervention(house: Model) -> None:
    changes = {
        "without the mask": Intervention(mask="none"),
        "without L1H7": Intervention(ablated=frozenset({("decoder.1.self", 7)})),
    }
    frame = measure(
        house,
        PROMPTS,
        weights=[("last", "s2")],
        statistics=["entropy"],
        metric=logit_difference(),
        interventions=changes,
    )
    assert list(frame["run"].unique()) == ["unchanged", *changes]
    for name, change in {"unchanged": Intervention(), **changes}.items():
        for number, prompt in enumerate(PROMPTS):
            trace = house.trace(prompt.text, intervention=change)
            rows = frame[(frame["run"] == name) & (frame["prompt"] == number)]
            place = at(trace, str(prompt.answers[1]), 1)
            weights = np.concatenate([one.weights() for one in trace.attention])
            assert rows["weight"].tolist() == pytest.approx(weights[:, -1, place], abs=CLOSE)
            expected = difference(house, prompt, logits_of(house, prompt, change))
            assert rows["logit_difference"].tolist() == pytest.approx([expected] * 32, abs=CLOSE)
    alone = measure(house, PROMPTS, metric=loss, interventions=Intervention(scale=1.0))
    assert list(alone["run"].unique()) == ["unchanged", "changed"]
    with pytest.raises(ValueError, match="without any intervention"):
        measure(house, PROMPTS, interventions={"unchanged": Intervention(scale=1.0)})


def test_a_steered_run_is_what_steering_gives(house: Model) -> None:
    happy, sad = (
        house.trace(f"He was {word}") for word in ("happy and full of joy", "sad and full of grief")
    )
    steering = Steering(direction(happy, sad, "decoder.1.self"), "decoder.1.self", 3.0)
    frame = measure(house, PROMPTS, metric=logit_difference(), interventions={"joy": steering})
    for number, prompt in enumerate(PROMPTS):
        found = steered(
            house, house.trace(prompt.text), steering.toward, steering.place, [0.0, 3.0]
        )
        expected = [difference(house, prompt, logits[None]) for logits in found.logits]
        rows = frame[frame["prompt"] == number]["logit_difference"]
        assert rows.tolist() == pytest.approx(expected, abs=CLOSE)

    def first(trace: Trace) -> float:
        return float(trace.require_prediction().after(-1)[0])

    frame = measure(
        house, PROMPTS[:1], metric=first, interventions={"joy": steering}, ablate="zero"
    )
    for _, row in frame[frame["run"] == "joy"].iloc[::9].iterrows():
        both = Intervention(ablated={(row["layer"], row["head"])}, steering=steering)
        apart = first(house.trace(PROMPTS[0].text, intervention=both)) - row["first"]
        assert row["first_effect"] == pytest.approx(apart, abs=CLOSE)
    for wrong, words in (
        (Steering(steering.toward, "decoder.9.self"), "no attention sub-layer"),
        (Steering(steering.toward[:5], "decoder.1.self"), "5 numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            measure(house, PROMPTS, metric=loss, interventions={"joy": wrong})


# One head's output replaced: by a hook on the map that reads the heads' outputs side by side.


def replaced_by_hook(
    model: Model, prompt: Prompt, layer: int, head: int, output: np.ndarray
) -> np.ndarray:
    """(token, vocabulary): logits where one head gives `output` (token, d_v)."""
    reads = model.layer(f"decoder.{layer}.self").output
    width = output.shape[-1]

    def hook(_: object, given: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        changed = given[0].clone()
        changed[0, :, head * width : (head + 1) * width] = torch.tensor(output)
        return (changed,)

    handle = reads.register_forward_pre_hook(hook)
    with torch.inference_mode():
        logits = model.module(model.ids(model.tokens(prompt.text)))[0]
    handle.remove()
    return np.asarray(logits.double().numpy())


def assert_effects(
    model: Model,
    prompts: list[Prompt],
    frame: pd.DataFrame,
    put_in: Callable[[int, int, int], np.ndarray],
) -> None:
    """put_in: of prompt, layer and head: (token, d_v)."""
    for number, prompt in enumerate(prompts):
        effects = frame[frame["prompt"] == number]["logit_difference_effect"].tolist()
        before = difference(model, prompt, logits_of(model, prompt))
        for place, effect in enumerate(effects):
            layer, head = divmod(place, 8)
            after = replaced_by_hook(model, prompt, layer, head, put_in(number, layer, head))
            expected = difference(model, prompt, after) - before
            assert effect == pytest.approx(expected, abs=2 * CLOSE)
    assert frame["logit_difference_effect"].abs().max() > 0.1


def test_a_head_gives_nothing_its_mean_by_position_or_its_output_on_another_prompt(
    house: Model, subtests: pytest.Subtests
) -> None:
    traces = [house.trace(one.text) for one in PROMPTS]
    assert len({len(one.tokens) for one in traces}) == 1
    for ablate, prompts, of in (
        ("zero", PROMPTS, lambda own, outputs: outputs[own] * 0),
        ("mean", PROMPTS, lambda own, outputs: np.mean(outputs, axis=0)),
        ("resample", PROMPTS[:2], lambda own, outputs: outputs[1 - own]),  # there is one other
    ):
        with subtests.test(ablate=ablate):
            frame = measure(house, prompts, metric=logit_difference(), ablate=ablate, seed=3)

            def put_in(number: int, layer: int, head: int, of: Any = of) -> np.ndarray:
                return of(number, [one.attention[layer].output[head] for one in traces])

            assert_effects(house, prompts, frame, put_in)
    of_three = [
        measure(house, PROMPTS, metric=logit_difference(), ablate="resample", seed=seed)
        for seed in (0, 0, 1, 2)
    ]
    assert of_three[0].equals(of_three[1])
    assert any(not of_three[0].equals(other) for other in of_three[2:])


def test_the_mean_of_prompts_of_other_lengths_is_by_role(house: Model) -> None:
    prompts = [*PROMPTS[:2], OTHER_LENGTH]
    traces = [house.trace(one.text) for one in prompts]
    assert len({len(one.tokens) for one in traces}) > 1

    def roles(number: int) -> list[str]:
        trace, (io, subject) = traces[number], prompts[number].answers
        found = [""] * len(trace.tokens)
        found[0], found[-1] = "first", "last"
        found[at(trace, str(io))] = "io"
        found[at(trace, str(subject))], found[at(trace, str(subject), 1)] = "s1", "s2"
        return found

    def mean(number: int, layer: int, head: int) -> np.ndarray:
        by_role: dict[str, list[np.ndarray]] = {}
        for other, trace in enumerate(traces):
            for role, vector in zip(roles(other), trace.attention[layer].output[head], strict=True):
                by_role.setdefault(role, []).append(vector)
        return np.stack([np.mean(by_role[role], axis=0) for role in roles(number)])

    frame = measure(house, prompts, metric=logit_difference(), ablate="mean")
    assert_effects(house, prompts, frame, mean)


def test_resampling_by_role_takes_each_role_from_the_same_role(house: Model) -> None:
    prompts = [PROMPTS[0], OTHER_LENGTH]
    metric = {"d": logit_difference()}
    frame = measure(house, prompts, metric=metric, ablate="resample", weights=[("last", "io")])
    assert frame["d_effect"].notna().all()
    assert frame["d_effect"].abs().max() > 0.1


@cases("prompts, words", [
    (PROMPTS[:1], "No prompt but “When Mary"),
    ([PROMPTS[0], "Then he left"], "the role “io”"),
    (["It was so", "He was there too"], None),
])  # fmt: skip
def test_outputs_need_another_prompt_to_come_from(prompts, words) -> None:
    metric = logit_difference("a", "the")
    if words is None:
        assert len(measure(loaded("house-gpt"), prompts, metric=metric, ablate="mean")) == 64
        return
    with pytest.raises(ValueError, match=words):
        measure(loaded("house-gpt"), prompts, metric=metric, ablate="mean")


def test_what_an_ablation_needs_is_said(house: Model) -> None:
    with pytest.raises(ValueError, match="needs a metric"):
        measure(house, PROMPTS, ablate="zero")
    with pytest.raises(ValueError, match="did you mean 'mean'"):
        measure(house, PROMPTS, metric=loss, ablate="median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no attention sub-layer"):
        measure(
            house,
            PROMPTS,
            metric=lambda trace: float(trace.find("decoder.0.self").weights(0)[0, 0]),
            ablate="zero",
        )


# Patching over pairs.


def test_patches_over_many_pairs_are_the_map_of_each(
    house: Model, subtests: pytest.Subtests
) -> None:
    path: dict[str, Any] = {"receiver": ("decoder.2.self", 3), "reads": ["query"]}
    for what, asked in [
        *((what, {}) for what in ("head", "weights", "stream", "feed_forward")),
        *(("path", path | {"feed_forwards": way}) for way in ("fixed", "recomputed")),
    ]:
        with subtests.test(what=what, asked=asked):
            given = asked if asked else {"what": what}
            frame = patch_all(house, PROMPTS[:2], logit_difference(), **given)
            for number, prompt in enumerate(PROMPTS[:2]):
                ids = [house.tokens(f"{prompt.text} {one}")[-1].id for one in prompt.answers]
                a, b = house.trace(prompt.text), house.trace(prompt.corrupt)
                of_pair = path_map if asked else patch_map
                shares = of_pair(house, a, b, **given, answer=tuple(ids))
                found = frame[frame["prompt"] == number]["share"].tolist()
                assert found == pytest.approx(shares.ravel(), abs=1e-4)
            if what == "stream":
                token = frame[(frame["prompt"] == 0) & (frame["role"] == "s2")]["token"].unique()
                assert token.tolist() == [at(house.trace(PROMPTS[0].text), "John", 1)]
                assert (frame["head"] == -1).all()


def test_patches_with_another_metric(house: Model) -> None:
    frame = patch_all(house, PROMPTS[:1], loss, what="head")
    row: Any = next(frame[frame["layer"] == "decoder.1.self"].itertuples())
    other = house.trace(PROMPTS[0].corrupt).attention[1].output[row.head]
    logits = torch.tensor(replaced_by_hook(house, PROMPTS[0], 1, row.head, other)[-1])
    wanted = house.tokens(f"{PROMPTS[0].text} {PROMPTS[0].answers[0]}")[-1].id
    assert row.patched == pytest.approx(-float(logits.log_softmax(-1)[wanted]), abs=CLOSE)
    same = Prompt(PROMPTS[0].text, answers=PROMPTS[0].answers, corrupt=PROMPTS[0].text)
    assert patch_all(house, [same], loss)["share"].isna().all()


# Other shapes, progress and end.


@cases("family", ["llama", "opt"])
def test_in_models_of_the_hub_too(family) -> None:
    model, texts = hub_models.loaded(family), [hub_models.TEXT, "the dog saw the lion"]
    change = Intervention(scale=0.5)
    frame = measure(
        model,
        texts,
        weights=[("last", "first")],
        metric=loss,
        ablate="zero",
        interventions={"flat": change},
    )
    for row in frame[frame["layer"] == model.attention_names[1]].itertuples():
        own = change if row.run == "flat" else Intervention()
        left_out = replace(own, ablated=frozenset({(row.layer, row.head)}))
        trace, without = (
            model.trace(texts[row.prompt], intervention=one) for one in (own, left_out)
        )
        assert row.weight == pytest.approx(
            trace.find(row.layer).weights(row.head)[-1, 0], abs=CLOSE
        )
        assert row.loss_effect == pytest.approx(loss(without) - loss(trace), abs=CLOSE)


def test_a_role_is_not_a_number_where_its_text_is_not_read() -> None:
    model = loaded("translator")
    pairs = [("last", "cat"), ("last", "last"), ("cat", "cat")]
    frame = measure(model, [Prompt("the cat saw", roles={"cat": "cat"})], weights=pairs)
    trace = model.trace("the cat saw")
    for attention in trace.attention:
        rows = frame[frame["layer"] == attention.name]
        weights = attention.weights()
        expected = {
            ("last", "cat"): weights[:, -1, 1],
            ("last", "last"): weights[:, -1, -1],
            ("cat", "cat"): weights[:, 1, 1],
        }
        if attention.kind == "causal":
            expected[pairs[0]] = np.full(attention.heads, np.nan)
        if attention.stack == "decoder":
            expected[pairs[2]] = np.full(attention.heads, np.nan)
        for query, key in pairs:
            found = rows[(rows["query"] == query) & (rows["key"] == key)]["weight"].to_numpy()
            assert found == pytest.approx(expected[query, key], abs=CLOSE, nan_ok=True)
    with pytest.raises(ValueError, match="ablated to zero"):
        measure(model, ["the cat saw", "the dog"], metric=loss, ablate="mean")
    zero = measure(model, ["the cat saw"], metric=loss, ablate="zero")
    assert len(zero) == sum(one.heads for one in trace.attention)


def test_progress_is_told_and_the_work_can_be_stopped(house: Model) -> None:
    told: list[tuple[int, int]] = []
    change = Intervention(scale=1.0)
    frame = measure(
        house,
        PROMPTS,
        metric=loss,
        interventions=change,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(done, 6) for done in range(1, 7)]
    stopped = measure(house, PROMPTS, metric=loss, stop=lambda: len(told) >= 8,
                      progress=lambda done, total: told.append((done, total)))  # fmt: skip
    assert stopped.equals(frame.iloc[:2])
    assert measure(house, PROMPTS, metric=loss, stop=lambda: True).empty
    assert measure(house, [], metric=loss).empty


def test_a_bar_counts_the_prompts(house: Model, capsys: pytest.CaptureFixture[str]) -> None:
    measure(house, PROMPTS, metric=loss, progress=True)
    assert "3/3" in capsys.readouterr().err


def test_a_bar_without_its_package_is_refused_in_a_sentence(
    house: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="tqdm is not installed"):
        measure(house, PROMPTS, metric=loss, progress=True)


def test_as_many_traces_live_with_many_prompts_as_with_few(house: Model) -> None:
    import gc
    import weakref

    def most_alive(count: int) -> int:
        alive: list[weakref.ref[Trace]] = []
        most = 0

        def metric(trace: Trace) -> float:
            nonlocal alive, most
            alive = [one for one in alive if one() is not None] + [weakref.ref(trace)]
            most = max(most, len(alive))
            return 0.0

        measure(house, [f"It was the {number}th day" for number in range(count)], metric=metric)
        gc.collect()
        assert all(one() is None for one in alive)
        return most

    assert most_alive(60) == most_alive(6) <= 2
