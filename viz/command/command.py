"""Starts the app, or opens a view of it; the other commands write files, check them, or serve a chat.

Bad input gets a sentence, and exit code 2.

What takes seconds to import is imported where it is needed: `--help` and a refusal come at once.
"""

import argparse
import os
import shutil
import signal
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from model.system.border import meant
from model.system.commands import CommandParser, command
from model.system.files import bounded, bytes_text, content_of, printable, text_of, there
from viz.notation.words import sentences_of

phrase = sentences_of("command.command")

PROJECT = Path(__file__).parents[2] / "pyproject.toml"  # of the repository; a wheel has none
MOST_TEXT = 100_000_000  # bytes of a text to be recorded: models read thousands of words
USAGE = phrase("prog_open_model")
COMMANDS = {
    "open": phrase("app_browser_model"),
    "class": phrase("app_class_computer"),
    "record": phrase("trace_file_model"),
    "profile": phrase("head_model_over"),
    "papers": phrase("results_papers_hold"),
    "check": phrase("whether_numbers_saved"),
    "site": phrase("pages_need_server"),
    "mcp": phrase("picture_numbers_chat"),
}


WRITING = ("profile", "papers", "site", "record")  # commands that write files
STANDARD = Path("-")  # as a file: what is piped in, or the standard output


def main(arguments: Sequence[str] | None = None) -> None:
    """Does what the command line says. arguments: instead of those of this process."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    named = given[0] if given[:1] and given[0] in COMMANDS else ""
    if named in WRITING and threading.current_thread() is threading.main_thread():
        # As by Ctrl-C: what is half written is removed.
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    name = f"{program()} {named}".rstrip()
    if named == "profile":
        from model.profile.__main__ import main as profile

        profile(given[1:], name)
    elif named == "papers":
        from model.papers.__main__ import main as papers

        papers(given[1:], name)
    else:
        with command(name):
            _do(named, given[bool(named) :])


def _do(named: str, given: list[str]) -> None:
    if named == "check":
        parser = CommandParser(
            f"{program()} check",
            description=phrase("runs_model_saved"),
        )
        parser.add_argument(
            "pictures", nargs="+", type=Path, metavar="PICTURE", help=phrase("png_svg_pdf")
        )
        sys.exit(_check(parser.parse_args(given).pictures))
    elif named == "mcp":
        parser = CommandParser(
            f"{program()} mcp",
            description=phrase("serves_chat_starts"),
        )
        parser.add_argument("models", nargs="*", metavar="MODEL", help=phrase("more_listed_name"))
        _serve_chat(parser.parse_args(given).models)
    elif named == "class":
        from model.system.extras import require_extra
        from viz.command.classroom import class_parser, serve_class

        require_extra("The app", "streamlit")
        serve_class(class_parser(program(), _port).parse_args(given))
    elif named == "site":
        _site(_site_parser().parse_args(given))
    elif named == "record":
        _record(_record_parser().parse_args(given))
    else:
        if not named:
            _check_word(given[:1])
        _start(_start_parser().parse_args(given))


def _check_word(given: Sequence[str]) -> None:
    """Raises ValueError for a first word that is a mistyped command."""
    from model.loading.registry import models

    for word in given:
        near = meant(word, COMMANDS)
        if near and word not in COMMANDS and models.found(word) is None and not meant(word, models):
            raise ValueError(f"There is no command {word!r}{near}.")


def program() -> str:
    """How this command is called here."""
    name = Path(sys.argv[0]).name
    return name if name != "__main__.py" else f"python -m {sys.modules['__main__'].__package__}"


def version() -> str:
    """That of the repository, or of the wheel."""
    if PROJECT.is_file():
        return str(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"])
    return metadata.version("attention-lens")


def _start_parser() -> CommandParser:
    listed = "\n".join(f"  {name:9}{what}" for name, what in COMMANDS.items())
    parser = CommandParser(
        program(),
        USAGE,
        description=phrase("without_arguments_app"),
        epilog=phrase("commands_command_help", listed=listed, program=program()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", nargs="?", help=phrase("name_list_models"))
    parser.add_argument("text", nargs="?", help=phrase("model_reads"))
    parser.add_argument("--port", type=_port, help=phrase("port_listen_without"))
    parser.add_argument("--no-browser", action="store_true", help="open no browser")
    parser.add_argument("--version", action="version", version=f"attention-lens {version()}")
    return parser


def _record_parser() -> CommandParser:
    parser = CommandParser(
        f"{program()} record",
        description=phrase("runs_model_text"),
    )
    parser.add_argument("model", help=phrase("name_list_models_hub"))
    parser.add_argument("text", help=phrase("text_file_utf_8"))
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="TRACE.safetensors",
        help=phrase("file_or_standard"),
    )
    parser.add_argument("--full", action="store_true", help=phrase("record_feed_forward"))
    parser.add_argument("--by-layer", action="store_true", help=phrase("model_larger_memory"))
    parser.add_argument(
        "--lines",
        action="store_true",
        help=phrase("file_line_text_o"),
    )
    return parser


def _check(pictures: Sequence[Path]) -> int:
    """Says of each picture whether its numbers hold. Returns 1 where some do not, 2 where some cannot be
    checked."""
    from viz.saving.certificate import LARGEST, certificate_in, check

    status = 0
    for picture in pictures:
        try:
            verdict = check(certificate_in(content_of(there(picture), LARGEST)))
        except ValueError as error:
            print(printable(f"{program()} check: {picture}: {error}"), file=sys.stderr)
            status = 2
            continue
        print(printable(f"{picture}: {verdict}"), flush=True)
        status = max(status, 0 if verdict.holds else 1)
    return status


def _site_parser() -> CommandParser:
    parser = CommandParser(
        f"{program()} site",
        description=phrase("writes_pages_need"),
    )
    parser.add_argument("target", type=Path, help=phrase("folder_lesson_file"))
    parser.add_argument("--course", type=Path, help=phrase("title_sentences_models"))
    parser.add_argument(
        "--in-browser",
        nargs="*",
        metavar="MODEL",
        help=phrase("instead_course_read"),
    )
    parser.add_argument("--lesson", action="store_true", help=phrase("html_file_lesson"))
    return parser


def _port(written: str) -> int:
    if not (written.isascii() and written.isdigit() and 0 < int(written) < 2**16):
        raise argparse.ArgumentTypeError("must be a number from 1 to 65535")
    return int(written)


def _start(options: argparse.Namespace) -> None:
    from model.system.extras import require_extra

    require_extra("The app", "streamlit")
    opens = "" if options.model is None else link(options.model, options.text)
    line = ["--server.port", str(options.port)] if options.port else []
    line += ["--server.headless", "true"] if options.no_browser else []
    from viz.server.starting import run_server

    run_server(line, opens)


def _serve_chat(more: Sequence[str]) -> None:
    from model.system.extras import require_extra

    require_extra(phrase("server_chats"), "anywidget_mcp")
    from viz.chat.answers import Answers, on_this_computer
    from viz.chat.server import ChatServer

    models = names_in_chat(on_this_computer(), more)
    ChatServer(Answers(models)).run("stdio")


def names_in_chat(listed: Mapping[str, str], more: Sequence[str]) -> dict[str, str]:
    """The models of a chat by their names there, each with what `load_model` takes. A folder is called by its
    last part, and by more of its path where that is the name of another model.

    Raises ValueError for a trace file, and for what is no model.
    """
    from model.loading.registry import known

    named = dict(listed)
    for model in more:
        entry = known(model)
        if entry.recorded:
            raise ValueError(
                "A trace file reads no other text, so a chat cannot use it: name a model."
            )
        at_hand = _at_hand(model)
        parts = (model,) if entry.folder is None else Path(os.path.abspath(model)).parts
        names = ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
        named[next(name for name in names if named.get(name, at_hand) == at_hand)] = at_hand
    return named


def link(model: str, text: str | None) -> str:
    """What stands in the app's address, behind the first slash, to open a model or a trace file.

    The files of a model are fetched where they are not on this computer. Raises ValueError, with a sentence,
    for what cannot be opened.
    """
    from viz.state.link import TEXT_LIMIT, View, address, opening_link, short_link

    if model.endswith(".safetensors") and not Path(model).is_dir():
        if text is not None:
            raise ValueError("A trace file has its own text: give no other one.")
        opened = _trace_file(model)
    else:
        opened = _at_hand(model)
    if text is not None and len(text) > TEXT_LIMIT:
        raise ValueError(f"The text has {len(text):,} characters; at most {TEXT_LIMIT:,} are read.")
    view = View(model=opened) if text is None else View(text, opened)
    if short_link(view)[1]:
        raise ValueError("The text is too long for a link. Start the app and type it there.")
    cell = ("query", "key")  # not said, so the page chooses the last token's largest weight
    said = {name: value for name, value in opening_link(view).items() if name not in cell}
    return address("", said)


def _trace_file(name: str) -> str:
    """Where a trace file lies, once it has been read."""
    from model.system.settings import settings
    from model.trace.trace_file import load_trace

    path = there(Path(name)).resolve()
    load_trace(path)
    if not settings().folders:
        raise ValueError(
            "The app may open no file of this computer: ATTENTION_FOLDERS is off, or not set while "
            "STREAMLIT_SERVER_ADDRESS lets others in. Set ATTENTION_FOLDERS=on."
        )
    return str(path)


def _at_hand(name: str) -> str:
    """A model whose files are on this computer by now; a folder by its whole path."""
    from model.download.entries import fetched
    from model.loading.registry import known, may_be_linked

    entry = known(name)
    if entry.folder is not None:
        name = str(entry.folder.resolve())
    elif not may_be_linked(name):
        fetched(entry, tell)
    if not may_be_linked(name):
        raise ValueError(f"{name[:200]} is no folder of a model: it has no config.json.")
    return name


def _record(options: argparse.Namespace) -> None:
    from model.loading.record import record, record_lines

    text = _text(options.text)
    how = {"full": options.full, "by_layer": options.by_layer}
    if options.lines:
        if options.output == STANDARD:
            raise ValueError("The traces of several lines go into a folder: -o must name one.")
        for file in record_lines(options.model, text.splitlines(), options.output, **how):
            _wrote(file, file.stat().st_size)
        return
    with _output(options.output) as file:
        record(options.model, text, file, **how)
        _wrote(options.output, file.stat().st_size)


@contextmanager
def _output(named: Path) -> Iterator[Path]:
    """The file that a command writes. The standard output gets it once it is whole, and nothing else: what
    libraries print meanwhile goes to the standard error."""
    if named != STANDARD:
        yield named
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "output"
        with redirect_stdout(sys.stderr):
            yield file
        with file.open("rb") as written:
            shutil.copyfileobj(written, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _wrote(file: Path, size: int) -> None:
    if file != STANDARD:
        print(printable(f"Wrote {file} ({bytes_text(size)})."), file=sys.stderr)


def _site(options: argparse.Namespace) -> None:
    from viz.site.build import write_lesson, write_site
    from viz.site.course import DEFAULT, read_course

    def say(sentence: str) -> None:
        tell(sentence, None)

    if options.target == STANDARD and not options.lesson:
        raise ValueError("A site is a folder: name one, or write one file with --lesson.")
    course = read_course(there(options.course) if options.course else DEFAULT)
    if options.in_browser is not None:
        course = replace(course, in_browser=tuple(options.in_browser))
    if options.lesson:
        with _output(options.target) as file:
            _wrote(options.target, write_lesson(file, course, say))
    else:
        written = write_site(options.target, course, say)
        _wrote(options.target / "index.html", sum(written.values()))


def _text(name: str) -> str:
    """What a file holds, or standard input; without the end of its last line."""
    if Path(name) != STANDARD:
        return text_of(there(name), MOST_TEXT).removesuffix("\n")
    content = sys.stdin.buffer.read(MOST_TEXT + 1)
    bounded(len(content), MOST_TEXT)
    try:
        return content.decode("utf-8-sig").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ValueError("What was piped in is not a text in UTF-8.") from error


def tell(sentence: str, share: float | None) -> None:
    """Says how far a download is, in one line of a terminal."""
    sentence = printable(sentence)
    if sys.stderr.isatty():
        done = "" if share is None else f" {share:.0%}"
        print(f"\r\x1b[K{sentence}{done}", end="\n" if share is None else "", file=sys.stderr)
