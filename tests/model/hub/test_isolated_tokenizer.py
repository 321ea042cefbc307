"""The process of its own in which a hub model's tokenizer works."""

import subprocess
import sys

from model.hub import isolated_tokenizer


def test_a_process_that_died_over_its_question_is_put_away_in_silence() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.wait()
    assert process.stdin is not None
    process.stdin.write(b"a question that nobody reads")
    isolated_tokenizer._end(process)
    assert process.stdin.closed
    assert process.returncode == 0
