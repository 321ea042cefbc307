"""The process of its own in which a hub model's tokenizer works."""

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from model.hub import isolated_tokenizer
from model.hub.tokenizer import HubTokenizer


def test_a_unigram_tokenizer_is_told_from_one_that_merges() -> None:
    unigram = models.Unigram([("?", 0.0), ("a", -1.0), ("ab", -2.0)], unk_id=0)
    merging = models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
    told = []
    for model in (unigram, merging):
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model))
        tokenizer._tokenizer = isolated_tokenizer.IsolatedTokenizer(tokenizer.backend_tokenizer)
        told.append(HubTokenizer(tokenizer, start=None, end=None, rows=3).is_unigram)
    assert told == [True, False]
