"""Sentences that a reader sees stand in words/en, not in the code: each is used, and each slot is given."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.rewriting import ROOTS
from model.system.words import SLOT

ROOT = Path(__file__).resolve().parents[2]
WORDS = {
    f"{file.stem}.{section}": texts
    for file in sorted((ROOT / "words" / "en").glob("*.toml"))
    if file.stem != "counts"
    for section, texts in tomllib.loads(file.read_text(encoding="utf-8")).items()
}
PLACES = (
    "app.py", "pages", "viz", "model/analysis", "model/arithmetic", "model/download/entries.py",
    "model/loading/untrained.py", "model/nn", "model/papers", "model/profile/battery", "model/training",
    "model/worked",
)  # fmt: skip
# Formulas, HTML, styles, hover templates of Plotly, queries, code samples and options of the command line.
NO_SENTENCE = re.compile(
    r"\\[a-zA-Z]| · \w+$|</|<[a-z]+[ >/]|%\{|[{};]\s*$|\bdef \w+\(|^\s*(SELECT|WITH|CREATE|COPY|INSERT) |;\n"
    r"|^(import|from) \w+|^\w+ = |--[\w-]+:|!important|:has\(|\bst-key-|^\.[a-z]"
)
NO_WORDS = re.compile(r"re\.|cast|SnippetLine|[A-Z]+\.at$")  # patterns, code, places in the notes
NAMES = ("one head, no scaling",)  # of recorded runs
# What writes words in a slot, where no page is drawn, what models read, and reasons of errors.
BELOW = (
    "viz/notation/", "viz/telemetry/", "viz/views/glossary/glossary.py",
    "model/analysis/stage_comparison.py", "model/nn/attention.py", "model/nn/intervention.py",
    "model/papers/__main__.py", "model/papers/texts.py",
    "model/profile/battery/prompts.py", "model/training/training_file.py",
    "model/training/training_record.py", "model/training/workshop.py", "model/training/recipe.py",
)  # fmt: skip


def sources() -> Iterator[tuple[str, ast.Module]]:
    for place in PLACES:
        for path in sorted(
            [ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py")
        ):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def is_sentence(text: str) -> bool:
    """Whether a text has four words or more, and is no formula, page or sample of code."""
    return (
        len(re.findall(r"[A-Za-z]{2,}", text)) >= 4
        and " " in text.strip()
        and not NO_SENTENCE.search(text)
    )


def sentences_in(tree: ast.Module) -> Iterator[str]:
    """The sentences of a module outside docstrings, errors, patterns, types and their values."""
    passed, values = set[int](), set[object](NAMES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.MatchValue | ast.arg):
            passed |= {id(inner) for inner in ast.walk(node)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(id(node.value))
        elif isinstance(node, ast.AnnAssign):
            passed |= {id(inner) for inner in ast.walk(node.annotation)}
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            passed |= {id(inner) for inner in ast.walk(node.returns)}
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            values |= {one.value for one in ast.walk(node.slice) if isinstance(one, ast.Constant)}
        elif isinstance(node, ast.Call) and NO_WORDS.match(ast.unparse(node.func)):
            passed |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in passed:
            continue
        if isinstance(node, ast.JoinedStr):
            passed |= {id(part) for part in node.values}
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "‡" for part in node.values
            )
            if is_sentence(text):
                yield text
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value not in values
            and is_sentence(node.value)
        ):
            yield node.value


def calls_of(tree: ast.Module) -> Iterator[tuple[str, str, set[str]]]:
    """Section, key and slots of each sentence that a module asks for."""
    sections = {
        node.targets[0].id: node.value.args[0].value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in ("Words", "sentences_of")
        and isinstance(node.value.args[0], ast.Constant)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in sections
        ):
            key = node.args[0]
            assert isinstance(key, ast.Constant), f"{ast.unparse(node)}: a key is written out"
            given = {word.arg for word in node.keywords if word.arg}
            yield str(sections[node.func.id]), str(key.value), given


def calls_in_script(script: str, table: str) -> Iterator[tuple[str, str, set[str]]]:
    """The same of a script, whose folder has the words of a file."""
    section = re.search(r'sentencesOf\("(\w+)"\)', script)
    for key, given in re.findall(r'\bsay\("(\w+)"(?:, \{ ((?:[^{}]|\{[^{}]*\})*) \})?\)', script):
        assert section
        outer = re.sub(r"\([^()]*\)|\"[^\"]*\"|\[[^\]]*\]", "", re.sub(r"\([^()]*\)", "", given))
        yield (
            f"{table}.{section[1]}",
            key,
            {part.split(":")[0].strip() for part in outer.split(", ") if part},
        )


def scripts() -> Iterator[tuple[str, str, str]]:
    """Each script that says something: its name, what it is, and its file of words."""
    for path in sorted((ROOT / "viz").rglob("*.js")):
        script = path.read_text(encoding="utf-8")
        if "sentencesOf(" in script and "bundled" not in path.parts:
            folder = next(place for place in path.parents if (place / "sentences.js").is_file())
            read = (folder / "sentences.js").read_text(encoding="utf-8")
            (table,) = re.findall(r"words/en/(\w+)\.toml\";", read)
            yield path.relative_to(ROOT).as_posix(), script, table


def test_no_file_is_named_like_a_part_of_the_tree() -> None:
    """The wheel puts the package's name before "pages.tokens": a section would not be found there."""
    assert {section.partition(".")[0] for section in WORDS} & ROOTS == set()


def test_no_sentence_stands_in_the_code(subtests: pytest.Subtests) -> None:
    for file, tree in sources():
        if not file.startswith(BELOW):
            with subtests.test(file=file):
                assert [*sentences_in(tree)] == []


def test_every_sentence_is_used_and_every_slot_given() -> None:
    used = defaultdict[str, set[str]](set)
    asked = [(file, call) for file, tree in sources() for call in calls_of(tree)]
    asked += [
        (file, call) for file, script, table in scripts() for call in calls_in_script(script, table)
    ]
    for file, (section, key, given) in asked:
        used[section].add(key)
        slots = {slot[1] for slot in SLOT.finditer(WORDS[section][key])}
        assert given == slots, f"{file}: {section}.{key}"
    assert {section: set(texts) - used[section] for section, texts in WORDS.items()} == {
        section: set[str]() for section in WORDS
    }


def test_each_thing_that_is_counted_has_its_plural() -> None:
    counts = tomllib.loads((ROOT / "words" / "en" / "counts.toml").read_text(encoding="utf-8"))
    slots = [
        slot[2] or ""
        for texts in WORDS.values()
        for text in texts.values()
        for slot in SLOT.finditer(text)
    ]
    things = {form.removeprefix("count ") for form in slots if form.startswith("count ")}
    for _, tree in sources():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "counted"
                and len(node.args) == 2
            ):
                thing = node.args[1]
                assert isinstance(thing, ast.Constant), ast.unparse(node)
                things.add(str(thing.value))
    assert all(set(counts[form]) == things for form in ("none", "form_0", "form_1"))


def test_a_planted_sentence_and_a_planted_slot_are_found() -> None:
    planted = ast.parse(
        "def f(n):\n    'A docstring says four words.'\n    return f'This sentence has {n} words.'"
    )
    assert len([*sentences_in(planted)]) == 1
    asked = ast.parse("say = sentences_of('a.b')\nsay('key', one=1)")
    assert [*calls_of(asked)] == [("a.b", "key", {"one"})]
    script = 'const say = sentencesOf("b");\nsay("key", { one, two: f(1, "a, b") });'
    assert [*calls_in_script(script, "a")] == [("a.b", "key", {"one", "two"})]
