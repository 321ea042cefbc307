"""The process of its own in which a hub model's tokenizer works."""

import subprocess
import sys

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from model.hub import isolated_tokenizer
from model.hub.tokenizer import HubTokenizer


def test_a_process_that_died_over_its_question_is_put_away_in_silence() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.wait()
    process.stdin.write(b"a question that nobody reads")
    isolated_tokenizer._end(process)
    assert process.stdin.closed
    assert process.returncode == 0


def test_a_unigram_tokenizer_is_told_from_one_that_merges() -> None:
    unigram = models.Unigram([("?", 0.0), ("a", -1.0), ("ab", -2.0)], unk_id=0)
    merging = models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
    told = []
    for model in (unigram, merging):
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model))
        tokenizer._tokenizer = isolated_tokenizer.IsolatedTokenizer(tokenizer.backend_tokenizer)
        told.append(HubTokenizer(tokenizer, start=None, end=None, rows=3).is_unigram)
    assert told == [True, False]
