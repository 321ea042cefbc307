"""`capture` of a module's own `generate`: all its passes as one trace."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from model import Intervention, Trace
from model.capture import capture
from tests.model.capture.test_cache import IDS, MODULES, module_of

KINDS = ("sdpa", "eager")
GREEDY: dict[str, Any] = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
SMALL = {"vocab_size": 16, "hidden_size": 16, "n_layer": 2, "n_head": 4, "eos_token_id": None}


def assert_same_attention(joined: Trace, whole: Trace) -> None:
    assert joined.check() < 1e-5
    for own, other in zip(joined.attention, whole.attention, strict=True):
        assert (own.place, own.sizes, own.doubt) == (other.place, other.sizes, "")
        np.testing.assert_allclose(own.weights(), other.weights(), atol=1e-5)
        np.testing.assert_allclose(own.output, other.output, atol=1e-5)
        assert (own.mask is None) == (other.mask is None)
        assert own.mask is None or np.array_equal(own.mask, other.mask)


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, kind) for name in MODULES for kind in KINDS), ("bloom", "eager")]
)
def test_its_rows_are_those_of_the_whole_text(
    name: str, kind: str, subtests: pytest.Subtests
) -> None:
    torch.manual_seed(0)
    config = BloomConfig(**SMALL, attn_implementation=kind)
    module: Any = BloomForCausalLM(config).eval() if name == "bloom" else module_of(name, kind)
    for prompt, more in (
        (IDS[:, :4], {}),
        (IDS[:, :1], {}),
        (torch.cat([IDS, IDS.flip(1)]), {"batch": 1}),
    ):
        with subtests.test(prompt=prompt.shape):
            joined = capture(module.generate, prompt, **GREEDY, **more)
            written = module.generate(prompt, **GREEDY)
            ids = written[more.get("batch", 0)][: len(joined.tokens)]
            assert [token.text for token in joined.tokens] == [*map(str, ids.tolist())]
            assert len(ids) == written.shape[1] - 1 or 2 in ids.tolist()  # the last one is not read
            assert_same_attention(joined, capture(module, ids[None]))


def test_a_translation_has_its_encoder_once_and_both_texts_named() -> None:
    torch.manual_seed(0)
    sizes = {"vocab_size": 16, "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2}
    module = T5ForConditionalGeneration(
        T5Config(**sizes, num_heads=4, decoder_start_token_id=3, eos_token_id=15)
    ).eval()
    joined = capture(module.generate, IDS, tokens=lambda ids: [f"w{id_}" for id_ in ids], **GREEDY)
    read = module.generate(IDS, **GREEDY)[:, :-1]
    assert [token.text for token in joined.tokens] == [f"w{id_}" for id_ in IDS[0].tolist()]
    assert [token.text for token in joined.target_tokens] == [f"w{id_}" for id_ in read[0].tolist()]
    whole = capture(module, input_ids=IDS, decoder_input_ids=read)
    assert_same_attention(joined, whole)


class Writer(nn.Module):
    """A module of somebody's own, with a cache of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.maps, self.out = nn.Embedding(16, 16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.spoilt: Callable[[Tensor], Tensor] = lambda keys: keys

    def forward(self, ids: Tensor, past: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        query, key, value = (
            one.unflatten(-1, (4, 4)).transpose(1, 2)
            for one in self.maps(self.table(ids)).chunk(3, -1)
        )
        if past is not None:
            key, value = (torch.cat(pair, 2) for pair in zip(past, (key, value), strict=True))
        future = torch.ones(query.shape[2], key.shape[2]).tril(key.shape[2] - query.shape[2]) == 0
        weights = (query @ key.mT / 2).masked_fill(future, -torch.inf).softmax(-1)
        made = self.out((weights @ value).transpose(1, 2).flatten(2))
        return made @ self.table.weight.T, (self.spoilt(key), value)

    def write(self, ids: Tensor, steps: int, *, cached: bool = True) -> Tensor:
        past, new = None, ids
        for _ in range(steps):
            logits, past = self(new if cached else ids, past if cached else None)
            new = logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, new], 1)
        return ids


def test_a_module_of_ones_own_that_writes_is_one_trace_too() -> None:
    torch.manual_seed(0)
    module = Writer()
    joined = capture(module.write, IDS, 4)
    read = module.write(IDS, 4)[:, :-1]
    assert [token.text for token in joined.tokens] == [*map(str, read[0].tolist())]
    assert_same_attention(joined, capture(module, read))


def test_what_is_not_one_pass_is_refused_in_a_sentence(subtests: pytest.Subtests) -> None:
    torch.manual_seed(0)
    llama, writer = module_of("llama"), Writer()
    rolled = Writer()
    rolled.spoilt = lambda keys: keys.roll(1, 2)
    changed = Intervention(ablated={("decoder.0.self", 1)})
    cases: list[tuple[str, Callable[[], Trace]]] = [
        ("beams", lambda: capture(llama.generate, IDS, num_beams=3, **GREEDY)),
        ("its passes are not one", lambda: capture(rolled.write, IDS, 3)),
        ("anew", lambda: capture(writer.write, IDS, 3, cached=False)),
        ("anew", lambda: capture(llama.generate, IDS, use_cache=False, **GREEDY)),
        ("another text", lambda: capture(writer.write, IDS, 3, intervention=changed)),
        ("ids of a generation", lambda: capture(writer, IDS, tokens=str)),
        ("torch.nn.Module", lambda: capture(IDS.sum)),
    ]
    for words, asked in cases:
        with subtests.test(words=words), pytest.raises(ValueError, match=words):
            asked()


def test_the_module_is_as_it_was() -> None:
    module = module_of("gpt2").train()
    before = {name: one.clone() for name, one in module.state_dict().items()}
    hooks = len(module._forward_pre_hooks)
    capture(module.generate, IDS, **GREEDY)
    assert module.training
    assert len(module._forward_pre_hooks) == hooks
    assert all(torch.equal(one, before[name]) for name, one in module.state_dict().items())
