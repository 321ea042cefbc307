"""What a site shows: its title, pages, sentences and lesson, as a teacher's course.toml says it. All texts
are plain: whatever stands in them is shown, and nothing of it is run."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from viz.explorer.selection import STAGES
from viz.site.model.parts import MODELS
from viz.state.link import TEXT_LIMIT, View
from viz.state.presets import EXAMPLES, SentenceExample

PageName = Literal["explore", "walk", "worked", "glossary", "lesson"]
PAGES: tuple[PageName, ...] = get_args(PageName)
DEFAULT = Path(__file__).with_name("course.toml")
_SWITCHES = ("mask", "scale", "positions", "heads")
_LONGEST = 2000  # characters of a title or a remark
_SENTENCES = 60  # of a site


@dataclass(frozen=True)
class CoursePart:
    """One part of a lesson, and what it opens: a page, and there a sentence (by its title), a change, a
    stage, or a part of the page. "" where nothing is named."""

    minutes: int
    title: str
    look: str
    ask: str
    expect: str
    page: PageName | Literal[""]
    sentence: str
    change: str
    stage: str
    at: str


@dataclass(frozen=True)
class Course:
    """A site's words and choices."""

    title: str
    introduction: str
    pages: tuple[PageName, ...]
    sentences: tuple[SentenceExample, ...]
    lesson: tuple[CoursePart, ...]
    in_browser: tuple[str, ...] = ()  # models that run there, for sentences of the reader's own

    def __post_init__(self) -> None:
        """Raises ValueError where there is nothing to show, or too much."""
        if not self.sentences and {"explore", "walk"} & {*self.pages}:
            raise ValueError("No example has one of the course's models: add a [[sentence]].")
        if len(self.sentences) > _SENTENCES:
            raise ValueError(f"A site has at most {_SENTENCES} sentences.")
        if unknown := [name for name in self.in_browser if name not in MODELS]:
            known = ", ".join(MODELS)
            raise ValueError(f"These models run in a browser: {known}; not {unknown[0][:80]!r}.")

    @property
    def alone(self) -> "Course":
        """The lesson by itself: it comes first, with the sentences that it opens; all where it opens none."""
        opened = {part.sentence for part in self.lesson}
        named = tuple(one for one in self.sentences if one.title in opened)
        others = tuple(name for name in self.pages if name != "lesson")
        return replace(self, pages=("lesson", *others), sentences=named or self.sentences)


def read_course(file: Path = DEFAULT) -> Course:
    """A course from its file. Raises ValueError, with a sentence, for what is no course."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}.") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{file} cannot be read as TOML: {error}.") from error
    return course_of(content)


def course_of(content: Mapping[str, Any]) -> Course:
    """A course as its file says it; what it leaves out is as in the one that ships with the app. Raises
    ValueError for a name that a course does not have, and for a value of another kind."""
    default = tomllib.loads(DEFAULT.read_text(encoding="utf-8"))
    table = _Table({**default, **content}, "The course")
    chosen, names = table.texts("models"), table.texts("pages")
    if unknown := [name for name in names if name not in PAGES]:
        raise ValueError(f"A site has the pages {', '.join(PAGES)}, not {unknown[0][:80]!r}.")
    listed = enumerate(table.tables("sentence"), 1)
    own = tuple(_sentence(_Table(one, f"Sentence {n}"), chosen[0]) for n, one in listed)
    sentences = own or tuple(one for one in EXAMPLES if one.view.model in chosen)
    known = sentences if "part" in content else EXAMPLES  # which the shipped lesson speaks of
    parts = [
        _part(_Table(one, f"Part {n}"), known) for n, one in enumerate(table.tables("part"), 1)
    ]
    made = Course(
        table.text("title"),
        table.text("introduction"),
        tuple(name for name in PAGES if name in names),
        sentences,
        tuple(parts),
        table.texts("in_browser", least=0),
    )
    table.end()
    return made


def _sentence(table: "_Table", model: str) -> SentenceExample:
    """A sentence. Where it names no head, its place is "", and without a cell that is (-1, -1): they are
    chosen when it has run."""
    text = table.text("text")
    place, head = table.pair("head", ("", 0), (str, int))
    query, key = table.pair("cell", (-1, -1), (int, int))
    if not text.strip() or len(text) > TEXT_LIMIT:
        raise ValueError(f"{table.name} needs a text of 1 to {TEXT_LIMIT:,} characters.")
    made = SentenceExample(
        table.text("title", text[:60]),
        View(text, table.text("model", model), place, head, query=query, key=key),
        table.text("look_for", ""),
    )
    table.end()
    return made


def _part(table: "_Table", sentences: Sequence[SentenceExample]) -> CoursePart:
    """A part of the lesson; what is to be seen is that of its sentence where it says nothing else."""
    title = table.text("sentence", "")
    shown = next((one for one in sentences if one.title == title), None)
    if title and shown is None:
        raise ValueError(f"{table.name}: there is no sentence with the title {title[:80]!r}.")
    page: Any = table.one_of("page", PAGES)
    made = CoursePart(
        minutes=table.number("minutes"),
        title=table.text("title"),
        look=table.text("look", shown.look_for if shown else ""),
        ask=table.text("ask", ""),
        expect=table.text("expect", ""),
        page=page,
        sentence=title,
        change=table.one_of("change", _SWITCHES),
        stage=table.one_of("stage", STAGES),
        at=table.text("at", ""),
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
            raise ValueError(f"{self.name}: {entry!r} is not {kind}.")
        return value

    def text(self, entry: str, default: str | None = None) -> str:
        def fits(value: object) -> bool:
            return isinstance(value, str) and (entry == "text" or len(value) <= _LONGEST)

        read: str = self._read(entry, default, fits, f"a text of at most {_LONGEST} characters")
        return read

    def one_of(self, entry: str, names: Sequence[str]) -> str:
        def fits(value: object) -> bool:
            return value == "" or value in names

        read: str = self._read(entry, "", fits, f"one of {', '.join(names)}")
        return read

    def texts(self, entry: str, least: int = 1) -> tuple[str, ...]:
        def fits(value: Any) -> bool:
            if not isinstance(value, list | tuple) or len(value) < least:
                return False
            return all(isinstance(one, str) for one in value)

        return tuple(self._read(entry, None, fits, "a list of texts"))

    def number(self, entry: str) -> int:
        def fits(value: object) -> bool:
            return type(value) is int and 0 < value <= 600

        read: int = self._read(entry, None, fits, "a number from 1 to 600")
        return read

    def pair(
        self, entry: str, default: tuple[Any, Any], kinds: tuple[type, type]
    ) -> tuple[Any, Any]:
        def fits(value: Any) -> bool:
            if not isinstance(value, list | tuple) or len(value) != 2:
                return False
            return all(type(one) is kind for one, kind in zip(value, kinds, strict=True))

        first, second = self._read(entry, default, fits, "a pair")
        return first, second

    def tables(self, entry: str) -> list[object]:
        def fits(value: object) -> bool:
            return isinstance(value, list)

        listed: list[object] = self._read(entry, [], fits, "a list of tables")
        return listed

    def end(self) -> None:
        """Refuses an entry that nothing has read: it is misspelled."""
        for entry in self.left:
            raise ValueError(f"{self.name} has no entry {entry[:80]!r}.")
