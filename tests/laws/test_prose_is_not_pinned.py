"""A sentence may be reworded without a test failing: an `assert` compares with the sentence's source, or with
the numbers and names in it. The checker reads the tests and runs none."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
NOT_OUR_PROSE = {  # what these compare with is written by none of us, or by the test itself
    "tests/model/many/test_examples.py": "texts that a model reads",
    "tests/model/run/test_texts.py": "what a tokenizer gives back",
    "tests/pages/test_encoder_decoder.py": "what the translator writes",
    "tests/pages/test_model_as_code.py": "a command to paste",
    "tests/pages/test_what_pages_ask.py": "a text that a model reads",
    "tests/viz/questions/test_claims.py": "words of a text that the test makes up",
    "tests/viz/server/test_sessions.py": "what Streamlit prints",
    "tests/viz/state/test_presets.py": "what a model writes",
}
WORD = re.compile(r"(?<!\S)[A-Za-z'’-]{2,}[.,;:]?(?!\S)")
WORDS = 4  # so many in one string are a sentence
# What is handed to other calls is an input: a text for a model, a script for the browser.
COMPARING = {
    *("all", "any", "count", "endswith", "findall", "fullmatch", "len"),
    *("list", "match", "search", "set", "sorted", "startswith", "sum"),
}


def compared(node: ast.AST) -> Iterator[str]:
    """The strings of an expression that something is compared with."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    parts = ast.iter_child_nodes(node)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        parts = iter([node.func, *(node.args if name in COMPARING else ())])
    for part in parts:
        yield from compared(part)


def pinned(source: str) -> list[int]:
    """The lines of the assertions that compare with a sentence."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert)
        and any(len(WORD.findall(text)) >= WORDS for text in compared(node.test))
    ]


def test_no_sentence_is_pinned() -> None:
    files = {str(file.relative_to(REPOSITORY)): file for file in REPOSITORY.glob("tests/**/*.py")}
    assert files.keys() >= NOT_OUR_PROSE.keys()
    found = [
        f"{name}:{line}"
        for name, file in sorted(files.items())
        if name not in NOT_OUR_PROSE
        for line in pinned(file.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_planted_sentence_is_found_and_its_numbers_an_input_and_a_script_are_not() -> None:
    source = """
assert "the largest weight is" in said
assert said == f"The head looks back by {count} tokens."
assert any(line.startswith("No token stands out") for line in lines)
assert re.search(r"weight of (0.25) for this token", said)
assert f"{count} tokens" in said
assert trace("The cat saw the dog").check() < 1e-4
assert page.evaluate("link => link.dataset in the page")
assert parts == ["decoder.0.self: one, two", "for i in range(3):"]
"""
    assert pinned(source) == [2, 3, 4, 5]
