"""Every sentence with which a public function refuses is explained in docs/errors.md."""

import ast
import re

from tests.laws.error_messages import BLANK, ROOT, raised, sentences, written

PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^\| `(.+?)` \| (.+?) \| (.+?) \|$", re.MULTILINE)
BEGINNINGS = [found[1] for found in ENTRY.finditer(PAGE)]


def test_every_refusal_of_a_public_function_is_explained() -> None:
    unexplained = {
        (sentence, file)
        for sentence, file in sentences()
        if not sentence.startswith(tuple(BEGINNINGS))
    }
    assert unexplained == set()


def test_no_explanation_outlives_its_message() -> None:
    """Sentences that are put together first and raised later count as well."""
    texts = {
        written(node)
        for room in ("model", "viz")
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp)
    }
    assert [one for one in BEGINNINGS if not any(text.startswith(one) for text in texts)] == []
    assert len(BEGINNINGS) == len(set(BEGINNINGS)) > 100


def test_a_message_is_read_with_blanks_for_what_is_filled_in() -> None:
    source = (
        'raise ValueError(f"{place} has heads 0 to {heads - 1}, " + f"not {head}.")\n'
        'class OddError(ValueError):\n    def __init__(self, n):\n        super().__init__(f"{n} is odd.")'
    )
    assert [*raised(ast.parse(source))] == [
        f"{BLANK} has heads 0 to {BLANK}, not {BLANK}.",
        f"{BLANK} is odd.",
    ]
