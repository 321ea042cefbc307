"""What a head does to an answer is what a plain loop over Hugging Face's model finds; and a head that is
turned round lowers what it raised."""

from collections.abc import Iterator
from functools import cache
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers

from model import Intervention, Model, load_model
from model.profile.battery import BY_NAME, KINDS, Change, HeadEffect, labels
from model.profile.battery.effects import (
    EFFECT_PROMPTS,
    NO_WORDS,
    NOT_LEFT_OUT,
    STANDING_OUT,
    added_directly,
    changes_without,
    head_effects,
    passes_without,
)
from model.profile.battery.prompts import LabelPrompt, random_prompts, sentence_prompts
from model.profile.shipped import shipped_profile
from tests.cases import cases
from tests.model.hub_models import loaded, saved

HEADS = (("decoder.0.self", 1), ("decoder.1.self", 4), ("decoder.2.self", 0))  # of three layers
OF_REPEATS = ("previous", "self", "first", "duplicate", "induction")


def shipped_labels(name: str) -> pd.DataFrame:
    found = shipped_profile(name)
    return found.labels


@cache
def repeats(family: str) -> list[tuple[list[int], list[int], list[int]]]:
    """The ids of the texts that are said twice, and the rows whose next token was said before: found anew in
    the ids alone. And the tokens of the control there, which follow in another text."""
    found = []
    for prompt in random_prompts(loaded(family), EFFECT_PROMPTS).made:
        ids = [token.id for token in prompt.source.tokens]
        middle = [token.id for token in prompt.source.tokens if not token.special]
        half = len(middle) // 2
        if len(middle) % 2 == 0 and middle[:half] == middle[half:]:
            start = ids.index(middle[0])
            rows = list(range(start + half, start + 2 * half - 1))
            others = [token for token, _ in prompt.source.answers.control]
            assert len({*others}) == len(others) == len(rows)
            found.append((ids, rows, others))
    assert len(found) == EFFECT_PROMPTS
    return found


@cache
def stock(family: str) -> Any:
    """The library's own model."""
    kind = transformers.AutoModel if family == "bert" else transformers.AutoModelForCausalLM
    return kind.from_pretrained(saved(family), attn_implementation="eager").eval()


def output_map(family: str, layer: int) -> Any:
    """The module that is W_O."""
    body = stock(family)
    if family == "gpt2":
        return body.transformer.h[layer].attn.c_proj
    if family == "bert":
        return body.encoder.layer[layer].attention.output.dense
    return body.model.layers[layer].self_attn.o_proj


def library_result(family: str, ids: list[int], head: tuple[str, int] | None) -> np.ndarray:
    """(T, …): what the library's model makes of one text, with one head's slice set to zero before W_O."""
    heads = stock(family).config.num_attention_heads
    handle = None
    if head is not None:
        layer, number = int(head[0].split(".")[1]), head[1]

        def zero(module: Any, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            parts = given[0].clone().unflatten(-1, (heads, -1))
            parts[..., number, :] = 0
            return (parts.flatten(-2), *given[1:])

        handle = output_map(family, layer).register_forward_pre_hook(zero)
    try:
        with torch.inference_mode():
            made = stock(family)(input_ids=torch.tensor([ids]))
    finally:
        if handle is not None:
            handle.remove()
    result = made.last_hidden_state if family == "bert" else made.logits
    return np.asarray(result[0].double().numpy())


def mean_leads(logits: np.ndarray, ids: list[int], rows: list[int], others: list[int]) -> Any:
    """(2,): of the next token, and of the control."""
    above = logits - logits.mean(-1, keepdims=True)
    return above[rows, [ids[row + 1] for row in rows]].mean(), above[rows, others].mean()


def asked(model: Model, given: set[tuple[str, int, str]]) -> pd.DataFrame:
    """What the weights of every head are said to show."""
    rows = [
        (layer.place.name, head, kind.name, (layer.place.name, head, kind.name) in given, 6)
        for layer in model.module.attentions()
        for head in range(layer.heads)
        for kind in KINDS
        if not kind.like
    ]
    return pd.DataFrame(rows, columns=["layer", "head", "label", "given", "prompts"])


@cases("family", ["llama", "gpt2"])
def test_the_pass_without_a_head_is_the_librarys_with_a_slice_of_zeros(family) -> None:
    model = loaded(family)
    found = head_effects(model, asked(model, {(*head, "induction") for head in HEADS}))
    for head in HEADS:
        changes, controls = np.transpose(
            [
                np.subtract(
                    *(
                        mean_leads(library_result(family, ids, one), ids, *at)
                        for one in (head, None)
                    )
                )
                for ids, *at in repeats(family)
            ]
        )
        known = found[*head, "induction"]
        assert known.measure == "logit"
        assert known.left_out.mean == pytest.approx(np.mean(changes), abs=1e-4)
        spread = np.std(changes, ddof=1) / len(changes) ** 0.5
        assert known.left_out.spread == pytest.approx(spread, abs=1e-4)
        assert abs(known.left_out.mean) > 1e-3  # it is not nothing
        assert known.left_out.control == pytest.approx(controls.mean(), abs=1e-4)
        assert abs(changes.mean() - controls.mean()) > 5e-4
        for label in OF_REPEATS:  # one answer, and one pass
            assert found[*head, label].left_out == known.left_out


@cases("family", ["llama", "gpt2"])
def test_the_direct_effect_is_a_product_of_the_librarys_matrices(family) -> None:
    model = loaded(family)
    found = added_directly(model, random_prompts(model, EFFECT_PROMPTS).made)
    for head in HEADS:
        by_hand = [
            np.mean(list(plain_effects(family, ids, rows, head)))
            for ids, rows, _ in repeats(family)
        ]
        known = found[*head, "induction"]
        assert known.mean == pytest.approx(np.mean(by_hand), abs=1e-4)
        spread = np.std(by_hand, ddof=1) / len(by_hand) ** 0.5
        assert known.spread == pytest.approx(spread, abs=1e-4)
        assert abs(known.mean) > 1e-3


def plain_effects(
    family: str, ids: list[int], rows: list[int], head: tuple[str, int]
) -> Iterator[float]:
    """What one head adds to the lead of the next token: context · W_O, the norm with its own statistics, the
    unembedding."""
    body, kept = stock(family), {}
    final = body.transformer.ln_f if family == "gpt2" else body.model.norm
    layer, number = int(head[0].split(".")[1]), head[1]
    hooks = [
        output_map(family, layer).register_forward_pre_hook(
            lambda module, given: kept.update(context=given[0][0].double().numpy())
        ),
        final.register_forward_pre_hook(
            lambda module, given: kept.update(stream=given[0][0].double().numpy())
        ),
    ]
    with torch.inference_mode():
        body(input_ids=torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    gamma = final.weight.detach().double().numpy()
    weight = output_map(family, layer).weight.detach().double().numpy()
    weight = weight.T if family == "gpt2" else weight  # (C, H · D)
    width = weight.shape[1] // body.config.num_attention_heads
    mine = slice(number * width, (number + 1) * width)
    table = body.get_output_embeddings().weight.detach().double().numpy()
    for row in rows:
        written, stream = weight[:, mine] @ kept["context"][row, mine], kept["stream"][row]
        if family == "gpt2":
            deviation = np.sqrt(stream.var() + body.config.layer_norm_epsilon)
            normed = (written - written.mean()) / deviation * gamma
        else:
            normed = written / np.sqrt((stream**2).mean() + body.config.rms_norm_eps) * gamma
        logits = table @ normed
        yield float(logits[ids[row + 1]] - logits.mean())


def test_a_model_without_words_is_asked_how_far_its_vectors_move() -> None:
    model, head = loaded("bert"), ("encoder.1.self", 2)
    found = head_effects(model, asked(model, {(*head, "duplicate")}))
    known = found[*head, "duplicate"]
    moved, others = [], []
    for prompt in random_prompts(model, EFFECT_PROMPTS).made:
        ids = [token.id for token in prompt.source.tokens]
        twice = [at for at, one in enumerate(ids) if ids.count(one) == 2]
        if len(twice) < 4 or len(twice) != len(ids) - prompt_frame(prompt):
            continue
        before, after = (library_result("bert", ids, one) for one in (None, head))
        share = np.linalg.norm(after - before, axis=1) / np.linalg.norm(before, axis=1)
        moved.append(share[twice].mean())
        others.append(np.delete(share, twice).mean() if len(twice) < len(ids) else nan)
    assert len(moved) == EFFECT_PROMPTS
    assert known.measure == "moved"
    assert known.left_out.mean == pytest.approx(np.mean(moved), abs=1e-4)
    assert known.left_out.control == pytest.approx(np.mean(others), abs=1e-4, nan_ok=True)
    of = {"spread": np.array(moved), "apart": np.subtract(moved, others)}
    for name, values in of.items():
        error = np.std(values, ddof=1) / len(values) ** 0.5
        assert getattr(known.left_out, name) == pytest.approx(error, abs=1e-4, nan_ok=True)
    assert np.isnan(known.effect.mean)
    assert known.reason == NO_WORDS
    assert found[*head, "brackets"].reason == f"{NO_WORDS} {NOT_LEFT_OUT}"


def prompt_frame(prompt: LabelPrompt) -> int:
    return sum(token.special for token in prompt.source.tokens)


@cases("name", ["induction", "llama", "bart"])
def test_nothing_left_out_changes_nothing_bit_for_bit_and_rows_do_not_touch_each_other(
    name,
) -> None:
    model = load_model(name) if name == "induction" else loaded(name)
    prompt = random_prompts(model, EFFECT_PROMPTS).made[0]
    target = prompt.target.tokens if prompt.target else ()
    _, recorded = model.passed(prompt.source.tokens, target)
    alone = passes_without(model, prompt, ())["logit"]
    assert np.array_equal(alone[0].numpy(), recorded)
    heads = [(name, 1) for name in reversed(model.attention_names)]
    both = passes_without(model, prompt, heads)["logit"]
    for row, head in enumerate(heads):
        off = Intervention(ablated=frozenset({head}))
        _, mine = model.passed(prompt.source.tokens, target, off)
        np.testing.assert_allclose(both[row].numpy(), mine, atol=1e-4)
        assert np.abs(mine - recorded).max() > 1e-3


def test_a_head_that_is_turned_round_lowers_what_it_raised() -> None:
    model, other = (load_model("induction") for _ in range(2))
    place, head = "decoder.1.self", 0
    width = other.config.d_model // other.layer(place).heads
    other.layer(place).output.weight[:, head * width : (head + 1) * width] *= -1
    own, turned = (
        table[(table["layer"] == place) & (table["head"] == head)].set_index("label")
        for table in map(labels, (model, other))
    )
    for table in (own, turned):
        assert table["given"]["induction"]  # it looks as before
    assert own["does"]["induction"] == "raises"
    assert own["effect"]["induction"] > 1
    assert own["left_out"]["induction"] < -0.5
    assert not own["given"]["copy_suppression"]
    assert turned["does"]["induction"] == "lowers"
    assert turned["effect"]["induction"] == pytest.approx(-own["effect"]["induction"], rel=0.5)
    assert turned["left_out"]["induction"] > 0.5
    assert turned["given"]["copy_suppression"]
    assert own["score"]["induction"] == pytest.approx(turned["score"]["induction"], abs=1e-5)
    assert np.isnan(own["score"]["names"])
    assert own["does"]["names"] == own["measure"]["names"] == own["effect_reason"]["names"] == ""


def test_few_heads_beside_those_that_look_so_are_left_out() -> None:
    model = load_model("stories")
    looks = asked(model, set())
    found = head_effects(model, looks)
    answered = {key: one for key, one in found.items() if not np.isnan(one.effect.mean)}
    assert {label for *_, label in answered} >= {"previous", "induction", "delimiter", "names"}
    for label in ("delimiter", "names"):
        mine = {key: one for key, one in answered.items() if key[2] == label}
        without = [key for key, one in mine.items() if not np.isnan(one.left_out.mean)]
        assert len(without) <= min(STANDING_OUT, len(mine))
        for key in {*mine} - {*without}:
            assert mine[key].reason == NOT_LEFT_OUT
            assert not mine[key].effect.is_clear("logit")
    assert any(one.reason == NOT_LEFT_OUT for one in answered.values())


@cases(
    "effect, left_out, measure, does",
    [
        (Change(), Change(), "", ""),
        (Change(0.5, 0.1, 0.0), Change(), "logit", "raises"),
        (Change(-0.5, 0.1, 0.0), Change(), "logit", "lowers"),
        (Change(0.5, 0.1, 0.0), Change(0.5, 0.1, 0.0), "logit", "lowers"),
        (Change(0.5, 0.1, 0.0), Change(-0.5, 0.1, 0.0), "logit", "raises"),
        (Change(0.5, 0.1, 0.0), Change(-0.01, 0.001, 0.0), "logit", "nothing"),  # too small
        (Change(), Change(-0.5, 0.3, 0.0), "logit", "nothing"),  # chance
        (Change(), Change(-0.5, 0.1, 0.6), "logit", "nothing"),  # any answer falls or rises so
        (Change(), Change(-0.5, 0.1, -0.6), "logit", "nothing"),
        (Change(), Change(-0.5, 0.1, nan), "logit", "raises"),
        (Change(), Change(0.1, 0.001, 0.05, 0.001), "moved", "moves"),
        (Change(), Change(0.1, 0.001, 0.15, 0.001), "moved", "nothing"),
        (Change(), Change(0.1, 0.02, 0.09, 0.01), "moved", "nothing"),  # as much as the other rows
        (
            Change(),
            Change(0.1, 0.02, 0.09, 0.001),
            "moved",
            "moves",
        ),  # in each prompt a little more
        (Change(), Change(0.1, 0.001, 0.07, 0.02), "moved", "nothing"),
        (Change(), Change(0.1, 0.01, nan, nan), "moved", "moves"),
        (Change(), Change(0.005, 0.0001, 0.0, 0.0001), "moved", "nothing"),
    ],
)
def test_the_verdict_follows_the_pass_without_the_head_and_else_its_direct_effect(
    effect, left_out, measure, does
) -> None:
    assert HeadEffect(effect, left_out, measure).does == does


def test_of_two_labels_with_the_same_cells_the_second_needs_what_its_name_says() -> None:
    names, negative = BY_NAME["names"], BY_NAME["negative_names"]
    assert negative.like == "names"
    for does, second in (("raises", False), ("lowers", True), ("nothing", False), ("", False)):
        assert names.is_given(0.8, 0.1, does)  # type: ignore[arg-type]
        assert negative.is_given(0.8, 0.1, does) is second  # type: ignore[arg-type]
        assert names.is_earned(does) is (does == "raises")  # type: ignore[arg-type]
        assert not negative.is_given(0.8, 0.5, does)  # type: ignore[arg-type]
    assert not BY_NAME["first"].is_earned("raises")  # its name says nothing of an answer


@cases("name", ["house-gpt", "smollm2-135m-instruct"])
def test_the_answers_of_sentences_are_the_other_name_and_the_right_verb(name) -> None:
    model = load_model(name)
    made = [prompt.source for prompt in sentence_prompts(model, EFFECT_PROMPTS).made]
    assert len(made) == 2 * EFFECT_PROMPTS
    for line in made:
        words = [token.text.strip() for token in line.tokens]
        (row,), ((token, against),) = line.answers.rows, line.answers.wanted
        wanted, wrong = (model.tokenizer.named([one])[0].text.strip() for one in (token, against))
        if line.answers.labels == ("names",):
            assert words[row] == "to"
            assert (words.count(wanted), words.count(wrong)) == (1, 2)
        else:
            assert words[row + 1] == wanted
            assert {wanted, wrong} in ({"is", "are"}, {"was", "were"})
        assert not {*line.answers.control[0]} & {token, against}


@pytest.mark.slow
def test_the_name_movers_of_a_deep_model_do_what_its_profile_says() -> None:
    """Of the prompts of names alone: the others are computed in the same way."""
    model = load_model("smollm2-135m-instruct")
    prompts = [
        one
        for one in sentence_prompts(model, EFFECT_PROMPTS).made
        if one.source.answers is not None and one.source.answers.labels == ("names",)
    ]
    heads = (("decoder.24.self", 4), ("decoder.23.self", 3))
    direct = added_directly(model, prompts)
    without = changes_without(model, prompts, [(*head, "names") for head in heads])
    table = shipped_labels("smollm2-135m-instruct")
    for head in heads:
        known = table[(table["layer"] == head[0]) & (table["head"] == head[1])]
        mine = known.set_index("label").loc["names"]
        found = HeadEffect(direct[*head, "names"], without[*head, "names"], "logit")
        for name, number in found.numbers.items():
            assert mine[name] == pytest.approx(number, abs=2e-3), (head, name)
        assert mine["does"] == found.does


@cases("name", ["induction", "stories"])
def test_the_labels_that_ship_are_found_again(name) -> None:
    """To the digits that float32 holds on any processor."""
    found, known = labels(load_model(name)), shipped_labels(name)
    for column in found.columns:
        if found[column].dtype == np.float64:
            np.testing.assert_allclose(found[column], known[column], atol=2e-3)
        else:
            assert found[column].tolist() == known[column].tolist(), column
