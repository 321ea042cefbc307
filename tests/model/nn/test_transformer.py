"""What comes out at the end: logits, generation, padded batches."""

import numpy as np
import pytest
import torch

from model import Intervention, Model, Trace
from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from tests.model.tiny import build, loaded, of_shape, sentence


@pytest.mark.models(of_shape("decoder", "encoder-decoder"))
def test_the_last_state_read_as_a_prediction_is_the_models_own(model: Model, trace: Trace) -> None:
    read = model.unembed(trace.residual["decoder"][-1])
    np.testing.assert_allclose(read, trace.logits, atol=1e-4, rtol=1e-4)
    lens = model.unembed(trace.streams["decoder"])
    assert lens.shape == (len(trace.residual["decoder"]), *trace.logits.shape)
    np.testing.assert_allclose(lens[-1], trace.logits, atol=1e-4, rtol=1e-4)


@pytest.mark.models(of_shape("encoder"))
def test_an_encoder_predicts_nothing(model: Model, trace: Trace) -> None:
    assert trace.logits is None
    with pytest.raises(ValueError, match="no next token"):
        model.unembed(trace.residual["encoder"][-1])
    with pytest.raises(ValueError, match="does not continue"):
        model.generate(sentence(model))


@pytest.mark.models(of_shape("decoder", "encoder-decoder"))
def test_generation_takes_the_most_probable_token_again_and_again(model: Model) -> None:
    text = sentence(model)
    written = [token.id for token in model.generate(text, limit=3)]
    device, tokenizer = model.device, model.tokenizer
    source = torch.tensor([[token.id for token in model.tokens(text)]], device=device)
    pair = model.config.shape == "encoder-decoder"
    chosen: list[int] = []
    while len(chosen) < 3 and (not chosen or chosen[-1] != tokenizer.end):
        fed = torch.tensor([[tokenizer.start, *chosen]] if pair else [source[0].tolist() + chosen])
        fed = fed.to(device)
        logits = model.module(source, fed) if pair else model.module(fed)
        chosen.append(int(logits[0, -1].argmax()))
    assert written == chosen


def test_generation_stops_at_the_models_context() -> None:
    model = loaded("gpt")
    text = " ".join(["the cat"] * 7)
    assert len(model.generate(text, limit=99)) == model.config.n_ctx - 14 + 1


def test_without_a_target_the_unchanged_models_own_output_is_read() -> None:
    model = loaded("translator")
    own = [token.id for token in model.generate("the cat saw", limit=model.config.n_ctx - 1)]
    own = [id_ for id_ in own if id_ != model.tokenizer.end]
    for intervention in (Intervention(), Intervention(scale=0.0), Intervention(positions=False)):
        fed = model.trace("the cat saw", intervention=intervention).target_tokens
        assert [token.id for token in fed] == [model.tokenizer.start, *own]


def test_the_module_refuses_what_its_shape_cannot_do() -> None:
    ids = torch.tensor([[1, 2]])
    for refused in (
        lambda: loaded("translator").module(ids),
        lambda: loaded("gpt").module.encode(ids),
        lambda: loaded("bert").module.decode(ids, None),
    ):
        with pytest.raises(ValueError, match=r"\w+ \w+.*\."):
            refused()


def test_a_padded_batch_gives_each_text_what_it_gets_alone(device: str) -> None:
    for name in ("gpt", "bert"):
        model = build(name, device)
        ids = torch.tensor([[2, 4, 8, 5], [3, 7, 0, 0]], device=device)
        padding = torch.tensor([[True] * 4, [True, True, False, False]], device=device)
        together = model.module(ids, padding=padding)
        torch.testing.assert_close(together[:1], model.module(ids[:1]))
        torch.testing.assert_close(together[1:, :2], model.module(ids[1:, :2]))
    model = build("translator", device)
    together = model.module(ids, ids, padding=padding)
    torch.testing.assert_close(together[1:], model.module(ids[1:, :2], ids[1:]))


def test_dropout_of_training_is_off_in_a_model() -> None:
    model = build("gpt", dropout=0.5)
    first, second = model.trace("the cat saw"), model.trace("the cat saw")
    np.testing.assert_array_equal(first.logits, second.logits)
    assert not any(parameter.requires_grad for parameter in model.module.parameters())


def test_heads_that_share_keys_are_refused_in_our_own_layers() -> None:
    config = TransformerConfig("decoder", 5, 4, 8, 4, decoder_layers=1, key_heads=2)
    with pytest.raises(ValueError, match="keys of its own"):
        Transformer(config)
