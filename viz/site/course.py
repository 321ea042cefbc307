"""What a site shows: its title, pages, sentences and lesson, as a teacher's course.toml says it. All texts are
plain: whatever stands in them is shown, and nothing of it is run."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from model.loading.registry import models
from viz.state.link import TEXT_LIMIT, View
from viz.state.presets import EXAMPLES, SentenceExample
from viz.views.for_a_class.lesson import LessonPart, parts

PageName = Literal["explore", "walk", "worked", "glossary", "lesson"]
PAGES: tuple[PageName, ...] = get_args(PageName)
SHIPPED = ("house-gpt", "stories", "induction", "translate-en-fr")  # models that need no download
TITLE = "Attention, number by number"
INTRODUCTION = (
    "Recorded runs of small language models. Choose a head, a cell, a stage; switch the mask, the scaling or the "
    "positions off. Every number is the model's own, and checked."
)
_LONGEST = 2000  # characters of a title or a remark
_SENTENCES = 60  # of a site


@dataclass(frozen=True)
class Course:
    """A site's own words and choices. lesson: its parts, each with the page of the app that it was written for.

    Raises ValueError where it has no page or no sentence.
    """

    title: str = TITLE
    introduction: str = INTRODUCTION
    pages: tuple[PageName, ...] = PAGES
    sentences: tuple[SentenceExample, ...] = field(
        default_factory=lambda: shipped_sentences(SHIPPED)
    )
    lesson: tuple[LessonPart, ...] = field(default_factory=parts)

    def __post_init__(self) -> None:
        if not self.pages:
            raise ValueError("A site has at least one page.")
        if not self.sentences and {"explore", "walk"} & {*self.pages}:
            raise ValueError("None of the examples is one of the course's models: add [[sentence]].")
        if len(self.sentences) > _SENTENCES:
            raise ValueError(f"A site has at most {_SENTENCES} sentences.")


def shipped_sentences(chosen: Sequence[str]) -> tuple[SentenceExample, ...]:
    """The examples of these models, in their order."""
    return tuple(one for one in EXAMPLES if one.view.model in chosen)


def read_course(file: Path) -> Course:
    """A course from its file. Raises ValueError, with a sentence, for what is no course."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}.") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{file} cannot be read as TOML: {error}.") from error
    return course_of(content)


def course_of(content: Mapping[str, Any]) -> Course:
    """A course as its file says it. Raises ValueError for a name that a course does not have, and for a value
    of another kind."""
    table = _Table(content, "The course")
    chosen = table.texts("models", SHIPPED)
    default = Course()
    sentences = tuple(
        _sentence(_Table(one, f"Sentence {n}"), chosen[0])
        for n, one in enumerate(table.tables("sentence"), 1)
    )
    lesson = tuple(
        _part(_Table(one, f"Part {n}"), sentences)
        for n, one in enumerate(table.tables("part"), 1)
    )
    made = replace(
        default,
        title=table.text("title", default.title),
        introduction=table.text("introduction", default.introduction),
        pages=_pages(table.texts("pages", PAGES)),
        sentences=sentences or shipped_sentences(chosen),
        lesson=lesson or default.lesson,
    )
    table.end()
    return made


def _pages(names: tuple[str, ...]) -> tuple[PageName, ...]:
    if unknown := [name for name in names if name not in PAGES]:
        raise ValueError(f"A site has the pages {', '.join(PAGES)}, not {unknown[0][:80]!r}.")
    return tuple(name for name in PAGES if name in names)


def _sentence(table: "_Table", model: str) -> SentenceExample:
    """A sentence; without a head the first one of the model's last layer, without a cell the last token's
    largest weight: both are chosen when it has run."""
    text = table.text("text")
    place, head = table.pair("head", ("", 0), (str, int))
    query, key = table.pair("cell", (-1, -1), (int, int))
    made = SentenceExample(
        table.text("title", text[:60]),
        View(text, table.text("model", model), place, head, query=query, key=key),
        table.text("look_for", ""),
    )
    table.end()
    if not text.strip() or len(text) > TEXT_LIMIT:
        raise ValueError(f"{table.name} needs a text of 1 to {TEXT_LIMIT:,} characters.")
    return made


def _part(table: "_Table", sentences: Sequence[SentenceExample]) -> LessonPart:
    """A part of a lesson, on the page Explore with one of the course's sentences."""
    minutes, opens = table.number("minutes"), table.text("sentence", "")
    shown = next((one for one in (*sentences, *EXAMPLES) if one.title == opens), None)
    if opens and shown is None:
        raise ValueError(f"{table.name}: there is no sentence with the title {opens[:80]!r}.")
    made = LessonPart(
        minutes,
        table.text("title"),
        "pages/home.py",
        {"text": shown.view.text, "model": shown.view.model} if shown else {},
        table.text("look", shown.look_for if shown else ""),
        table.text("ask", ""),
        table.text("expect", ""),
    )
    table.end()
    return made


class _Table:
    """A table of a file, whose entries are read by name. Each is read once, and none may be left."""

    def __init__(self, content: object, name: str) -> None:
        if not isinstance(content, Mapping):
            raise ValueError(f"{name} is no table.")
        self.left, self.name = dict(content), name

    def _read(self, entry: str, default: object, fits: Callable[[Any], bool], kind: str) -> Any:
        value = self.left.pop(entry, default)
        if value is None:
            raise ValueError(f"{self.name} needs {entry!r}.")
        if not fits(value):
            raise ValueError(f"{self.name}: {entry!r} is no {kind}.")
        return value

    def text(self, entry: str, default: str | None = None) -> str:
        def fits(value: object) -> bool:
            return isinstance(value, str) and (entry == "text" or len(value) <= _LONGEST)

        read: str = self._read(entry, default, fits, f"text of at most {_LONGEST} characters")
        return read

    def texts(self, entry: str, default: tuple[str, ...]) -> tuple[str, ...]:
        def fits(value: object) -> bool:
            listed = isinstance(value, list | tuple) and len(value) > 0
            return listed and all(isinstance(one, str) for one in value)

        return tuple(self._read(entry, default, fits, "list of texts"))

    def number(self, entry: str) -> int:
        def fits(value: object) -> bool:
            return type(value) is int and 0 < value <= 600

        read: int = self._read(entry, None, fits, "number from 1 to 600")
        return read

    def pair(self, entry: str, default: tuple[Any, Any], kinds: tuple[type, type]) -> tuple[Any, Any]:
        def fits(value: object) -> bool:
            listed = isinstance(value, list | tuple) and len(value) == 2
            return listed and all(type(one) is kind for one, kind in zip(value, kinds, strict=True))

        first, second = self._read(entry, default, fits, "pair")
        return first, second

    def tables(self, entry: str) -> list[object]:
        def fits(value: object) -> bool:
            return isinstance(value, list)

        listed: list[object] = self._read(entry, [], fits, "list of tables")
        return listed

    def end(self) -> None:
        """Refuses an entry that nothing has read: it is misspelled."""
        for entry in self.left:
            raise ValueError(f"{self.name} has no entry {entry[:80]!r}.")
