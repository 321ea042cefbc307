"""What a site shows: its title, pages, sentences and lesson, as a teacher's course.toml says it. All texts
are plain: whatever stands in them is shown, and nothing of it is run."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    ValidationError,
)

from model.system.files import text_of
from viz.explorer.selection import STAGES
from viz.site.model.parts import MODELS
from viz.state.link import TEXT_LIMIT, View
from viz.state.presets import EXAMPLES, SentenceExample
from viz.views.for_a_class.lesson import FILE as LESSON

PageName = Literal["explore", "walk", "worked", "glossary", "lesson"]
PAGES: tuple[PageName, ...] = get_args(PageName)
DEFAULT = Path(__file__).with_name("course.toml")
_SENTENCES = 60  # of a site, and parts of a lesson
_MOST_BYTES = 2_000_000  # of a file
CourseWords = Annotated[str, Field(max_length=2000)]  # a title or a remark
CourseNumber = Annotated[StrictInt, Field(ge=0, lt=10**6)]


def _known_stage(name: str) -> str:
    if name and name not in STAGES:
        raise ValueError(f"it must be one of {', '.join(STAGES)}")
    return name


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


class CourseTable(BaseModel):
    """A table of a course: no unknown names, no other kinds."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CourseSentence(CourseTable):
    text: Annotated[str, Field(max_length=TEXT_LIMIT, pattern=r"\S")]
    title: CourseWords | None = None
    model: CourseWords | None = None
    look_for: CourseWords = ""
    head: tuple[CourseWords, CourseNumber] | None = None
    cell: tuple[CourseNumber, CourseNumber] | None = None

    def example(self, model: str) -> SentenceExample:
        """Where it names no head, the place is "", and without a cell that is (-1, -1): they are chosen when
        it has run."""
        (place, head), (query, key) = self.head or ("", 0), self.cell or (-1, -1)
        view = View(self.text, self.model or model, place, head, query=query, key=key)
        return SentenceExample(
            self.text[:60] if self.title is None else self.title, view, self.look_for
        )


class CoursePartTable(CourseTable):
    minutes: Annotated[StrictInt, Field(ge=1, le=600)]
    title: CourseWords
    look: CourseWords | None = None
    ask: CourseWords = ""
    expect: CourseWords = ""
    page: PageName | Literal[""] = ""
    sentence: CourseWords = ""
    change: Literal["", "mask", "scale", "positions", "heads"] = ""
    stage: Annotated[str, AfterValidator(_known_stage)] = ""
    at: CourseWords = ""

    def part(self, number: int, sentences: Sequence[SentenceExample]) -> CoursePart:
        """What is to be seen is that of its sentence where it says nothing else."""
        shown = next((one for one in sentences if one.title == self.sentence), None)
        if self.sentence and shown is None:
            raise ValueError(
                f"Part {number}: there is no sentence with the title {self.sentence[:80]!r}."
            )
        look = self.look if self.look is not None else shown.look_for if shown else ""
        return CoursePart(**self.model_dump(exclude={"look"}), look=look)


class CourseFile(CourseTable):
    title: CourseWords
    introduction: CourseWords
    pages: Annotated[list[PageName], Field(min_length=1)]
    models: Annotated[list[CourseWords], Field(min_length=1)]
    in_browser: list[CourseWords] = []
    sentence: list[CourseSentence] = []
    part: Annotated[list[CoursePartTable], Field(max_length=_SENTENCES)] = []


def read_course(file: Path = DEFAULT) -> Course:
    """A course from its file. Raises ValueError, with a sentence, for what is no course."""
    try:
        return course_of(tomllib.loads(text_of(file, _MOST_BYTES)))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file} cannot be read as TOML: {error}.") from error
    except RecursionError as error:
        raise ValueError(f"{file} is nested too deeply.") from error


def course_of(content: Mapping[str, Any]) -> Course:
    """A course as its file says it; what it leaves out is as in the one that ships with the app. Raises
    ValueError for a name that a course does not have, and for a value of another kind."""
    files = (DEFAULT, LESSON)
    default = {k: v for file in files for k, v in tomllib.loads(file.read_text("utf-8")).items()}
    try:
        said = CourseFile.model_validate({**default, **content})
    except ValidationError as error:
        raise ValueError(_refusal(error)) from error
    own = tuple(one.example(said.models[0]) for one in said.sentence)
    sentences = own or tuple(one for one in EXAMPLES if one.view.model in said.models)
    known = sentences if "part" in content else EXAMPLES  # which the shipped lesson speaks of
    return Course(
        said.title,
        said.introduction,
        tuple(name for name in PAGES if name in said.pages),
        sentences,
        tuple(one.part(number, known) for number, one in enumerate(said.part, 1)),
        tuple(said.in_browser),
    )


def _refusal(error: ValidationError) -> str:
    """A sentence on the first thing that is wrong, by the name of its table: “Sentence 2”."""
    wrong = error.errors(include_url=False)[0]
    table, *inside = wrong["loc"]
    if table in ("sentence", "part") and inside:
        where, inside = f"{str(table).capitalize()} {int(inside[0]) + 1}", inside[1:]
    else:
        where, inside = "The course", [table]
    if not inside:
        return f"{where} is no table."
    entry = repr(str(inside[0])[:80])
    if wrong["type"] == "extra_forbidden":
        return f"{where} has no entry {entry}."
    if wrong["type"] == "missing" and len(inside) == 1:
        return f"{where} needs {entry}."
    return f"{where}: {entry} is {str(wrong['input'])[:80]!r}. {wrong['msg']}."
