"""What the files of a model say of its head decides what is shown: only what predicts tokens has logits."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from model import Trace, load_model
from model.trace.unproven import UnprovenError
from tests.cases import cases
from tests.folders import new_folder
from tests.model.hub_families import FAMILIES
from tests.model.hub_models import TEXT, build, save

HEADS = {
    "GPT2ForSequenceClassification": "gpt2",
    "LlamaForSequenceClassification": "llama",
    "LlamaForTokenClassification": "llama",
    "LlamaModel": "llama",
    "BertForSequenceClassification": "bert",
    "BartForSequenceClassification": "bart",
    "T5EncoderModel": "t5",
}


@cache
def saved(kind: str) -> Path:
    folder = new_folder(kind)
    family = HEADS[kind]
    choices = {**FAMILIES[family][2], "pad_token_id": 0}
    return save(folder, build(kind, FAMILIES[family][1], choices), adds=family in ("bert", "bart"))


def eager(kind: str, trace: Trace) -> Any:
    """The weights of the last stack in the library's own class, which chooses the decoder's ids itself."""
    stock = getattr(transformers, kind).from_pretrained(saved(kind), attn_implementation="eager")
    ids = torch.tensor([[token.id for token in trace.tokens]])
    with torch.inference_mode():
        made = stock.eval()(input_ids=ids, output_attentions=True)
    return made.decoder_attentions if "decoder_attentions" in made else made.attentions


@cases("kind", HEADS)
def test_a_model_without_logits_of_tokens_shows_its_layers_and_no_next_token(kind) -> None:
    model = load_model(str(saved(kind)), device="cpu")
    trace = model.trace(TEXT)
    weights = eager(kind, trace)
    shown = [
        one for one in trace.attention if one.stack == trace.stacks[-1] and one.kind != "cross"
    ]
    for attention, expected in zip(shown, weights, strict=True):
        ours = np.stack([attention.weights(head) for head in range(attention.heads)])
        np.testing.assert_allclose(ours, expected[0], atol=1e-5)
    if model.config.shape == "encoder":
        assert trace.logits is None
    else:
        with pytest.raises(UnprovenError, match="no matrix that makes logits"):
            _ = trace.logits
        with pytest.raises(ValueError, match="writes no token"):
            model.generate(TEXT)
