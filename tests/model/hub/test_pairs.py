"""Two sentences with [SEP] between them are read as the library's pair, with its token types."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoModel, AutoTokenizer

from model import load_model
from model.code import listing
from model.nn.layers import segments_of
from tests.cases import cases
from tests.folders import new_folder
from tests.model.hub_families import FAMILIES, WORDS
from tests.model.hub_models import build, loaded, train_pieces

FIRST, SECOND = "the cat saw the dog", "and the dog saw the mat ."
KINDS = {
    "bert": ("BertModel", "BertConfig"),
    "electra": ("ElectraModel", "ElectraConfig"),
    "albert": ("AlbertModel", "AlbertConfig"),
}


@cache
def saved(kind: str) -> Path:
    """A tiny encoder with BERT's tokenizer."""
    folder = new_folder(kind)
    choices = {**FAMILIES["bert"][2], "vocab_size": 64, "embedding_size": 48}
    build(*KINDS[kind], choices).save_pretrained(folder)
    if kind == "albert":
        train_pieces(folder / "spiece", [FIRST, SECOND] * 9, "[CLS]", "[SEP]", "[MASK]")
        return folder
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizer(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@cases("kind", KINDS)
def test_a_pair_has_the_ids_the_token_types_and_the_weights_of_the_librarys(kind) -> None:
    library = AutoTokenizer.from_pretrained(saved(kind))
    model = load_model(str(saved(kind)), device="cpu")
    trace = model.trace(f"{FIRST} [SEP] {SECOND}")
    both = library(FIRST, SECOND, return_tensors="pt")
    assert [token.id for token in trace.tokens] == both["input_ids"][0].tolist()
    stock = AutoModel.from_pretrained(saved(kind), attn_implementation="eager").eval()
    with torch.inference_mode():
        theirs = stock(**both, output_attentions=True).attentions
        untyped = stock(both["input_ids"], output_attentions=True).attentions
    for attention, weights, others in zip(trace.attention, theirs, untyped, strict=True):
        ours = np.stack([attention.weights(head) for head in range(attention.heads)])
        np.testing.assert_allclose(ours, weights[0], atol=1e-6)
        assert ("token_type_ids" in both) is bool(np.abs(ours - others[0].numpy()).max() > 1e-3)


def test_each_text_of_a_batch_has_its_own_segments() -> None:
    ids = torch.tensor([[2, 7, 3, 8, 9, 3], [2, 7, 8, 9, 3, 0]])
    assert segments_of(ids, 3).tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]]
    assert segments_of(ids, 0).tolist() == torch.zeros_like(ids).tolist()


def test_what_is_no_pair_has_no_second_segment() -> None:
    model = load_model(str(saved("bert")), device="cpu")
    library = AutoTokenizer.from_pretrained(saved("bert"))
    trace = model.trace(FIRST, record="full")
    assert [token.id for token in trace.tokens] == library(FIRST)["input_ids"]
    assert np.ptp(trace.summands["encoder"]["segments"], axis=0).max() == 0
    assert loaded("roberta").config.separator == 0


def test_minilm_reads_pairs_and_its_listing_too(tmp_path: Path) -> None:
    model = load_model("minilm", device="cpu")
    trace = model.trace("How old are you? [SEP] I am six years old.", record="full")
    segments = trace.summands["encoder"]["segments"]
    ends = [place for place, token in enumerate(trace.tokens) if token.text == "[SEP]"]
    assert len(ends) == 2
    changes = np.flatnonzero(np.abs(np.diff(segments, axis=0)).max(-1))
    assert changes.tolist() == [ends[0]]
    names: dict[str, Any] = {}
    exec(listing(model), names)
    states = names["forward"](
        torch.tensor([token.id for token in trace.tokens]), model.module.named_weights()
    )
    np.testing.assert_allclose(states, trace.residual["encoder"][-1], atol=1e-4)
