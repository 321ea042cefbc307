"""`capture` of attention that people write themselves: every record is the module's own computation."""

import re
import sys
import threading
from contextlib import nullcontext
from itertools import product
from types import FrameType

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from model.capture import CaptureWarning, capture
from model.trace.trace import Trace
from tests.model.capture.own_modules import (
    HEADS,
    SPELLINGS,
    WIDTH,
    OwnAttention,
    annotated_transformer,
    capped,
    distances,
    einsum,
    heads_in_the_batch,
    in_place,
    nano_gpt,
    one_key_head,
    sinks,
)

TEXTS, TOKENS, OTHERS = 3, 5, 7
CAUSAL = {"nano_gpt", "annotated_transformer", "in_place", "first_gpt", "shared_keys", "where"}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def vectors(tokens: int = TOKENS) -> torch.Tensor:
    return torch.randn(TEXTS, tokens, WIDTH)


def test_however_attention_is_written_its_record_is_its_own(subtests: pytest.Subtests) -> None:
    for written, text in product(SPELLINGS, [0, 2]):
        with subtests.test(written=written.__name__, text=text):
            torch.manual_seed(0)
            module, x = OwnAttention(written), vectors()
            trace = capture(module, x, batch=text)
            (attention,) = trace.attention
            module.eval()(x)
            own = own_heads(module, x)[text].detach().numpy()
            assert attention.heads == HEADS
            assert np.abs(attention.output - own).max() < 1e-5
            assert trace.check() < 1e-5
            assert attention.kind == ("causal" if written.__name__ in CAUSAL else "self")
            assert attention.scale == pytest.approx(0.5)
            assert attention.module == "OwnAttention"
            assert trace.find("OwnAttention") is attention


def own_heads(module: OwnAttention, x: torch.Tensor) -> torch.Tensor:
    """(B, H, T, D), by the module's own function without dropout."""
    with torch.no_grad():
        vectors = [module.split(one(x)) for one in module.maps]
        if module.written is nano_gpt:
            return F.scaled_dot_product_attention(*vectors, is_causal=True)
        if module.written.__name__ == "shared_keys":
            q, k, v = vectors
            k, v = (one[:, :2].repeat_interleave(2, 1) for one in (k, v))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return module.written(*vectors)


def test_attention_to_another_text_is_told_from_attention_to_its_own(
    subtests: pytest.Subtests,
) -> None:
    for written in [einsum, heads_in_the_batch, one_key_head, distances]:
        with subtests.test(written=written.__name__):
            torch.manual_seed(0)
            trace = capture(
                OwnAttention(written),
                vectors(),
                vectors(OTHERS),
                tokens=[*"abcdefg"],
                target_tokens=[*"vwxyz"],
            )
            (attention,) = trace.attention
            assert attention.kind == "cross"
            assert [token.text for token in trace.keys_of(attention)] == [*"abcdefg"]
            assert [token.text for token in trace.queries_of(attention)] == [*"vwxyz"]
            same_length = capture(OwnAttention(written), vectors(), vectors())
            assert same_length.attention[0].kind == "cross"


def test_the_stages_are_read_off_the_steps() -> None:
    x = vectors()
    assert capture(OwnAttention(annotated_transformer), x).attention[0].mask_value == -1e9
    assert capture(OwnAttention(capped), x).attention[0].cap == pytest.approx(3)
    (alibi,) = capture(OwnAttention(distances), x).attention
    assert alibi.bias[0, 0].tolist() == [0, -0.5, -1, -1.5, -2]
    sunk = capture(OwnAttention(sinks), x).attention[0].sinks
    assert sunk.tolist() == [0.5, 1, -1, 2]
    assert len(capture(OwnAttention(one_key_head), x).attention[0].vectors[1]) == 1


def test_a_module_is_afterwards_as_it_was() -> None:
    module = nn.Sequential(OwnAttention(nano_gpt), nn.BatchNorm1d(TOKENS), nn.Dropout(0.5))
    before = {name: values.clone() for name, values in module.state_dict().items()}
    attributes = {name: [*vars(part)] for name, part in module.named_modules()}
    capture(module, vectors())
    with pytest.raises(RuntimeError, match="shapes"):
        capture(module, torch.randn(2, 3, 99))
    assert all(part.training for part in module.modules())
    assert attributes == {name: [*vars(part)] for name, part in module.named_modules()}
    assert all(torch.equal(values, before[name]) for name, values in module.state_dict().items())
    assert not any(part._forward_hooks for part in module.modules())


class Remembering(nn.Module):
    """Attention that keeps what it saw: in lists, in a plain tensor, and through `.data`."""

    def __init__(self, log: list[torch.Tensor], fails: bool) -> None:
        super().__init__()
        self.attn, self.fails = OwnAttention(einsum), fails
        self.log, self.last = log, {"seen": [torch.zeros(1)]}
        self.cache = torch.full((TEXTS, TOKENS, WIDTH), torch.nan)
        self.register_buffer("mean", torch.zeros(WIDTH))
        with torch.inference_mode():
            self.inferred = torch.zeros(TOKENS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.log.append(x)
        self.last["seen"][0] += 1
        self.last["seen"].append(x)
        self.cache[:, :2] = x[:, :2]
        self.mean.data.add_(x.mean((0, 1)))
        with torch.inference_mode():
            self.inferred += 1
        if self.fails:
            raise RuntimeError("the pass failed")
        return self.attn(x)


def test_what_a_module_keeps_is_the_same_object_with_the_same_numbers(
    subtests: pytest.Subtests,
) -> None:
    for fails in [False, True]:
        with subtests.test(fails=fails):
            torch.manual_seed(0)
            log: list[torch.Tensor] = []
            module = nn.Sequential(*(Remembering(log, fails) for _ in range(2)))
            parts = [part for part in module if isinstance(part, Remembering)]
            before = [(one.last, one.last["seen"], one.last["seen"][0], one.cache) for one in parts]
            with pytest.raises(RuntimeError, match="failed") if fails else nullcontext():
                capture(module, vectors())
            assert log == []
            for one, (last, seen, count, cache) in zip(parts, before, strict=True):
                assert one.log is log
                assert one.last is last
                assert one.last["seen"] is seen
                assert len(seen) == 1
                assert seen[0] is count
                assert one.cache is cache
                assert cache.isnan().all()
                assert not any(kept.any() for kept in (count, one.mean, one.inferred))


def test_a_mask_written_in_place_is_seen_in_inference_mode_too() -> None:
    module, x = OwnAttention(in_place), vectors()
    (own,) = capture(module, x).attention
    with torch.inference_mode():
        seen = [capture(module, one).attention[0] for one in (x, x.clone())]  # also made inside
    for found in seen:
        assert found.kind == "causal"
        assert np.array_equal(found.weights(1), own.weights(1))


def test_threads_do_not_mix() -> None:
    inputs = {length: torch.randn(1, length, WIDTH) for length in range(2, 10)}
    module, traces = OwnAttention(einsum), dict[int, Trace]()

    def run(length: int) -> None:
        traces[length] = capture(module, inputs[length])

    threads = [threading.Thread(target=run, args=(length,)) for length in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {length: len(trace.tokens) for length, trace in traces.items()} == {n: n for n in inputs}
    assert all(len(trace.attention) == 1 for trace in traces.values())


def test_at_no_moment_is_a_module_without_its_parameters() -> None:
    """Another thread may be reading it."""
    module, whole = OwnAttention(einsum), list[bool]()

    def look(_frame: FrameType, event: str, _called: object) -> None:
        if event == "c_return":
            whole.append("_parameters" in vars(module))

    sys.setprofile(look)
    try:
        capture(module, vectors())
    finally:
        sys.setprofile(None)
    assert whole
    assert all(whole)


def test_a_module_called_twice_has_two_places() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attn = OwnAttention(einsum)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.attn(self.attn(x))

    trace = capture(Twice(), vectors())
    assert [one.module for one in trace.attention] == ["attn", "attn#2"]
    assert [one.name for one in trace.attention] == ["encoder.0.self", "encoder.1.self"]
    assert trace.find("attn#2") is trace.attention[1]


def test_what_was_not_recorded_is_said() -> None:
    trace = capture(OwnAttention(einsum), vectors())
    with pytest.raises(ValueError, match="It was captured from a module: only attention"):
        len(trace.norms)
    with pytest.raises(ValueError, match="No attention was seen in Linear"):
        capture(nn.Linear(WIDTH, WIDTH), vectors())


def test_attention_that_no_stage_stands_for_is_refused_with_a_sentence() -> None:
    def noisy(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.sort(q @ k.mT, -1).values.softmax(-1) @ v

    def two_times(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT).softmax(-1).mul(torch.rand(TOKENS, TOKENS)) @ v

    with pytest.raises(ValueError, match="does not read a product of queries and keys"):
        capture(OwnAttention(noisy), vectors())
    with pytest.raises(
        ValueError,
        match=r"OwnAttention has attention.*its output, recomputed .* differs from its own",
    ):
        capture(OwnAttention(two_times), vectors())


def test_a_refusal_names_three_sub_layers_and_counts_the_others() -> None:
    def mixed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        weights = torch.einsum("bhqk,hg->bgqk", (q @ k.mT).softmax(-1), torch.eye(HEADS))
        return weights @ v

    module = nn.Sequential(*(OwnAttention(mixed) for _ in range(5)))
    with pytest.raises(ValueError, match="where heads mix their weights") as refused:
        capture(module, vectors())
    told = str(refused.value)
    assert "Sequential" in told
    assert re.findall(r"\b\d\b", told) == ["0", "1", "2", "2"]


def test_one_refused_sub_layer_is_a_warning_beside_others() -> None:
    def sorted_scores(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.sort(q @ k.mT, -1).values.softmax(-1) @ v

    module = nn.Sequential(OwnAttention(einsum), OwnAttention(sorted_scores))
    with pytest.warns(CaptureWarning, match="^1 has attention that is not recorded"):
        trace = capture(module, vectors())
    assert [one.module for one in trace.attention] == ["0"]


def test_a_second_product_is_kept_with_a_doubt() -> None:
    def relative(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        far = torch.randn(TOKENS, WIDTH // HEADS)
        return (q @ k.mT + (q @ far.mT).flip(-1)).softmax(-1) @ v

    (attention,) = capture(OwnAttention(relative), vectors()).attention
    assert attention.bias is not None
    assert "second product" in attention.doubt
    assert capture(OwnAttention(einsum), vectors()).attention[0].doubt == ""


def test_a_kernel_that_cannot_be_watched_is_named() -> None:
    @torch.library.custom_op("house_of_tests::flash_attn", mutates_args=())
    def flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    with pytest.raises(ValueError, match="by `flash_attn`, whose steps cannot be seen"):
        capture(OwnAttention(flash), vectors())
