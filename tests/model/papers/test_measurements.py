"""The figures of claims, each against a computation of its own: a plain loop, or PyTorch's."""

from copy import deepcopy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model.analysis.attribution.relevance import weight_gradients
from model.papers import sinks
from model.papers.explanations import Case, output_without_values
from model.papers.texts import passages
from tests.cases import cases
from tests.model.papers.wired import encoder, subject
from tests.model.tiny import loaded


@cases("name", ["stories", "translate-en-fr"])
def test_the_weight_on_the_first_token_is_counted_row_by_row(name) -> None:
    asked = subject(loaded(name))
    first, second, ratios = [], [], []
    for passage in passages(asked.model):
        trace = asked.trace(passage)
        for attention in trace.attention:
            if attention.kind == "cross" or attention.sizes[2] < 3:
                continue
            for head in range(attention.heads):
                weights, lengths = (
                    attention.weights(head),
                    np.linalg.norm(attention.value[head], axis=-1),
                )
                rows = range(1, len(weights))
                first.append(np.mean([weights[row, 0] for row in rows]))
                later = range(2, len(weights)) if attention.kind == "causal" else [0, *rows[1:]]
                second.append(np.mean([weights[row, 1] for row in later]))
                if first[-1] > 0.3:
                    ratios.append(lengths[0] / lengths[1:].mean())
    measured = sinks.first_token(asked)
    assert measured.figure.value == pytest.approx(np.mean(first), abs=1e-5)
    assert measured.control.value == pytest.approx(np.mean(second), abs=1e-5)
    assert sinks.sink_values(asked).figure.value == pytest.approx(np.mean(ratios), abs=1e-4)


def test_relevance_is_carried_from_layer_to_layer() -> None:
    asked = subject(loaded("induction"))
    passage = passages(asked.model)[0]
    trace = asked.trace(passage)
    case = Case(asked, passage, trace)
    gradients = weight_gradients(asked.model, trace, case.answer)
    total = np.eye(len(passage.tokens))
    for place in ("decoder.0.self", "decoder.1.self"):
        attention = trace.find(place)
        mean = np.zeros_like(total)
        for head in range(attention.heads):
            for query in range(len(total)):
                for key in range(query + 1):
                    product = (
                        gradients[place][head, query, key] * attention.weights(head)[query, key]
                    )
                    mean[query, key] += max(product, 0) / attention.heads
        total = total + mean @ total
    assert np.allclose(case.relevance(), total[-1, :-1])


def test_tokens_left_out_have_the_mean_vector() -> None:
    asked = subject(loaded("stories"))
    passage = passages(asked.model)[0]
    left_out, ids = [2, 4], [passage.tokens[at].id for at in (2, 4)]
    assert all([token.id for token in passage.tokens].count(one) == 1 for one in ids)
    module = deepcopy(asked.model.module)
    table = module.embedding.tokens.weight.data
    table[ids] = table.mean(0)
    expected = module(asked.model.ids(passage.tokens))[0, -1]
    case = Case(asked, passage, asked.trace(passage))
    unchanged, without = case.left_out([[], left_out])[:, -1]
    others = [
        one for one in range(len(table)) if one not in ids
    ]  # the table makes their logits too
    assert np.allclose(without[others], expected[others], atol=1e-4)
    assert np.allclose(unchanged, case.trace.require_prediction().after(-1), atol=1e-4)
    assert not np.allclose(without, unchanged, atol=1e-2)


def test_the_share_until_the_answer_changes_is_counted_one_by_one() -> None:
    asked = subject(loaded("induction"))
    passage = passages(asked.model)[3]
    case = Case(asked, passage, asked.trace(passage))
    order = case.weights()
    ranked = sorted(range(case.tokens), key=lambda at: -order[at])
    for count in range(1, case.tokens + 1):
        if int(case.left_out([ranked[:count]])[0, -1].argmax()) != case.answer:
            break
    assert case.kept_until(order) == pytest.approx(count / case.tokens)


@cases("name", ["stories", "encoder"])
def test_a_value_at_zero_is_zero_in_the_map_itself(name) -> None:
    asked = subject(encoder() if name == "encoder" else loaded(name))
    passage = passages(loaded("stories"))[0]
    module = asked.model.module
    stack = module.encoder if name == "encoder" else module.decoder
    states: list[torch.Tensor] = []
    layer = 0
    after = stack.blocks[layer].register_forward_hook(lambda part, given, x: states.append(x[0]))
    for token in (None, 2, 5):

        def zero(
            part: object, given: object, values: torch.Tensor, token: int | None = token
        ) -> torch.Tensor:
            values = values.clone()
            if token is not None:
                values[:, token] = 0
            return values

        hook = stack.blocks[layer].self_attention.value.register_forward_hook(zero)
        asked.ended([passage])
        hook.remove()
    after.remove()
    own, *others = (state.double() for state in states)
    expected = [1 - F.cosine_similarity(other, own, dim=-1) for other in others]
    found = output_without_values(asked, passage, layer, [2, 5])
    assert np.allclose(found, torch.stack(expected), atol=1e-6)
