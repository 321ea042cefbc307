"""Interventions that `capture` carries into a module's own kernel calls, and the logits that it takes."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, BertModel, GPT2Config, GPT2LMHeadModel

from model.capture import capture
from model.loading.in_memory import trace as trace_of_ours
from model.nn.intervention import Intervention
from model.trace.trace import Trace
from model.trace.trace_file import read_trace, trace_file
from model.trace.unproven import UnprovenError
from tests.model.capture.own_modules import SPELLINGS, OwnAttention, nano_gpt

IDS = [3, 1, 4, 1, 5, 9, 2]
WORDS, WIDTH, HEADS = 20, 12, 3


class Reader(nn.Module):
    """A decoder of one's own, in the layouts that people write; its factor and mask can be chosen."""

    def __init__(self, *, joined: bool, words: int = WORDS) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(WORDS, WIDTH)
        self.maps = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.outs = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.head = nn.Linear(WIDTH, words)
        self.joined = joined  # heads in the batch
        self.scale: float | None = None
        self.causal = True
        self.left_out: tuple[int, int] | None = None  # layer and head

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        for layer in range(2):
            split = self.maps[layer](x).unflatten(-1, (3, HEADS, -1))  # (B, T, 3, H, D)
            q, k, v = split.permute(2, 0, 3, 1, 4)
            if self.joined:
                q, k, v = (one.flatten(0, 1) for one in (q, k, v))
            read = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=self.scale)
            read = read.reshape(len(ids), HEADS, ids.shape[1], -1)
            if self.left_out is not None and self.left_out[0] == layer:
                read = read.index_fill(1, torch.tensor([self.left_out[1]]), 0.0)
            x = x + self.outs[layer](read.transpose(1, 2).flatten(2))
        logits: Tensor = self.head(x)
        return logits


def logits(trace: Trace) -> np.ndarray:
    assert trace.logits is not None
    return trace.logits


def test_a_changed_pass_is_that_of_a_module_that_is_so(subtests: pytest.Subtests) -> None:
    for joined, text in product([False, True], [0, 1]):
        with subtests.test(joined=joined, text=text):
            module, ids = Reader(joined=joined), torch.tensor([IDS, IDS[::-1]])
            plain = capture(module, ids, batch=text)
            changes: list[tuple[Intervention, dict[str, Any]]] = [
                (Intervention(ablated={("decoder.0.self", 1)}), {"left_out": (0, 1)}),  # type: ignore[arg-type]
                (Intervention(scale=1.0), {"scale": 1.0}),
                (Intervention(mask="none"), {"causal": False}),
            ]
            for intervention, attributes in changes:
                changed = capture(module, ids, batch=text, intervention=intervention)
                own = Reader(joined=joined)
                vars(own).update(attributes)
                np.testing.assert_allclose(logits(changed), own(ids)[text].detach(), atol=1e-5)
                assert np.abs(logits(changed) - logits(plain)).max() > 1e-3
                assert changed.check() < 1e-5
                assert changed.intervention == intervention
                assert [one.name for one in changed.attention] == [
                    one.name for one in plain.attention
                ]
            again = capture(module, ids, batch=text)
            np.testing.assert_array_equal(logits(again), logits(plain))


def test_a_head_that_is_left_out_keeps_its_record() -> None:
    module, ids = Reader(joined=False), torch.tensor([IDS])
    name = "Reader#2"
    plain = capture(module, ids)
    changed = capture(module, ids, intervention=Intervention(ablated=frozenset({(name, 2)})))
    assert [one.ablated for one in changed.attention] == [(), (2,)]
    assert changed.intervention.ablated == {("decoder.1.self", 2)}
    np.testing.assert_array_equal(changed.find(name).output, plain.find(name).output)
    assert read_trace(trace_file(changed)).intervention == changed.intervention


def test_only_the_named_attention_is_changed() -> None:
    module, ids = Reader(joined=False), torch.tensor([IDS])
    intervention = Intervention(scale=1.0, mask="none", only=frozenset({"decoder.1.self"}))
    first, second = capture(module, ids, intervention=intervention).attention
    assert (first.scale, second.scale) == (pytest.approx(0.5), 1.0)
    assert first.mask is not None
    assert second.mask is None


def test_it_is_the_pass_that_this_app_makes_of_a_model_that_it_knows() -> None:
    torch.manual_seed(0)
    module = GPT2LMHeadModel(
        GPT2Config(vocab_size=WORDS, n_embd=16, n_layer=2, n_head=2, n_positions=16)
    )
    for intervention in (
        Intervention(),
        Intervention(ablated=frozenset({("decoder.0.self", 1), ("decoder.1.self", 0)})),
        Intervention(mask="none"),
        Intervention(scale=1.0),
    ):
        seen = capture(module, torch.tensor([IDS]), intervention=intervention)
        ours = trace_of_ours(module, None, IDS, intervention=intervention)
        np.testing.assert_allclose(logits(seen), logits(ours), atol=2e-5)
        for one, other in zip(seen.attention, ours.attention, strict=True):
            np.testing.assert_allclose(one.weights(), other.weights(), atol=2e-5)


def test_padding_stays_hidden_where_the_causal_mask_is_lifted() -> None:
    class Padded(Reader):
        def forward(self, ids: Tensor) -> Tensor:
            q, k, v = (
                self.maps[0](self.table(ids)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            )
            mask = torch.ones(ids.shape[1], ids.shape[1]).tril().bool()
            mask[:, -2:] = False
            mask = mask if self.causal else torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    module, ids = Padded(joined=False), torch.tensor([IDS])
    for module.causal in (True, False):  # a mask of truths, and one of numbers
        (changed,) = capture(module, ids, intervention=Intervention(mask="none")).attention
        weights = changed.weights(0)
        assert (weights[:, -2:] == 0).all()
        assert (weights[:, :-2] > 0).all()


def test_what_cannot_be_carried_is_refused(subtests: pytest.Subtests) -> None:
    for intervention, words in [
        (Intervention(positions=False), "not positions"),
        (Intervention(dropout=0.1), "not dropout"),
        (Intervention(hidden=frozenset({1})), "not hidden"),
        (Intervention(ablated=frozenset({("decoder.7.self", 0)})), "There is no attention"),
        (Intervention(ablated=frozenset({("decoder.0.self", 3)})), "has 3 heads"),
        (Intervention(scale=1.0, only=frozenset({"nothing"})), "There is no attention 'nothing'"),
    ]:
        with subtests.test(words=words), pytest.raises(ValueError, match=words):
            capture(Reader(joined=False), torch.tensor([IDS]), intervention=intervention)


def test_a_head_is_left_out_however_attention_is_written(subtests: pytest.Subtests) -> None:
    for written, text in product(SPELLINGS, [0, 2]):
        with subtests.test(written=written.__name__, text=text):
            torch.manual_seed(0)
            torch.manual_seed(0)
            module, x = OwnAttention(written).eval(), torch.randn(3, 5, 16)

            class After(nn.Module):
                """What reads the outputs of the heads shows what came of them."""

                def __init__(self) -> None:
                    super().__init__()
                    self.inner = module

                def forward(self, x: Tensor) -> Tensor:
                    y: Tensor = self.inner(x)
                    read.append(y[text].detach().clone())
                    return y

            read: list[Tensor] = []
            intervention = Intervention(ablated=frozenset({("inner", 2)}))
            (attention,) = capture(After(), x, batch=text, intervention=intervention).attention
            assert attention.ablated == (2,)
            heads = torch.tensor(
                attention.output
            ).clone()  # the module's own, before one was left out
            heads[2] = 0
            expected = module.out(heads.transpose(0, 1).flatten(1))
            np.testing.assert_allclose(read[-1], expected.detach(), atol=1e-5)
            assert (read[0] - read[1]).abs().max() > 1e-3


def test_scores_outside_the_kernel_cannot_be_changed_and_a_bias_stays() -> None:
    for intervention in (Intervention(scale=1.0), Intervention(mask="none")):
        with pytest.raises(ValueError, match="only in one call of"):
            capture(OwnAttention(nano_gpt), torch.randn(1, 5, 16), intervention=intervention)

    class Biased(nn.Module):
        def forward(self, q: Tensor) -> Tensor:
            distance = torch.arange(5.0)[:, None] - torch.arange(5.0)
            return F.scaled_dot_product_attention(q, q, q, attn_mask=-distance.abs())

    with pytest.raises(ValueError, match="numbers that are added"):
        capture(Biased(), torch.randn(1, 2, 5, 4), intervention=Intervention(mask="none"))


def test_logits_are_taken_only_where_they_are_told_from_other_vectors() -> None:
    ids = torch.tensor([IDS])
    module = Reader(joined=False)
    plain = capture(module, ids)
    np.testing.assert_array_equal(logits(plain), module.eval()(ids)[0].detach())
    assert read_trace(trace_file(plain)).prediction is not None
    sizes = {
        "vocab_size": WORDS,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = BertConfig(**sizes, intermediate_size=16, max_position_embeddings=16)
    assert logits(capture(BertForMaskedLM(config), ids)).shape == (len(IDS), WORDS)
    wide = BertConfig(
        **(sizes | {"hidden_size": WORDS}), intermediate_size=16, max_position_embeddings=16
    )
    for other in (
        BertModel(config),  # states
        BertModel(wide),  # states as wide as the vocabulary
        BertForMaskedLM(wide),  # nothing tells its logits from states
        Reader(joined=False, words=7),  # classes
    ):
        trace = capture(other, ids)
        assert trace.prediction is None
        with pytest.raises(UnprovenError, match="captured from a module"):
            trace.require_prediction()
