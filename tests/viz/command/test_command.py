"""The command: what it opens and records, and how it refuses."""

import io
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from model import load_model
from model.loading.shipped import ASSETS
from model.profile import open_profile
from model.run.model import Model
from model.trace.trace_file import read_trace, trace_file
from tests.cases import cases
from viz.command.command import COMMANDS, PROJECT, link, main, names_in_chat, program
from viz.state.link import TEXT_LIMIT, from_link

TEXT = "The cat saw the dog & a 50% “é”"


def viewed(address: str) -> tuple[str, str, str]:
    """The page, the model and the text that the app opens at an address."""
    parts = urlsplit(address)
    view, problems = from_link({name: value for name, (value,) in parse_qs(parts.query).items()})
    assert problems == ()
    return parts.path, view.model, view.text


@cases("model", ["house-gpt", "induction"])
def test_a_model_and_a_text_open_at_the_attention_page(model) -> None:
    assert viewed(link(model, TEXT)) == ("", model, TEXT)


def test_models_of_one_name_have_names_of_their_own_in_a_chat(tmp_path: Path) -> None:
    folders = [tmp_path / parent / "step" for parent in "ab"]
    folders.append(tmp_path / "stories")
    for folder, model in zip(folders, ("stories", "induction", "induction"), strict=True):
        shutil.copytree(ASSETS / model, folder)
    given = [*map(str, folders), str(folders[0]), "stories"]
    assert names_in_chat({"stories": "stories"}, given) == {
        "stories": "stories",
        "step": str(folders[0]),
        "b/step": str(folders[1]),
        f"{tmp_path.name}/stories": str(folders[2]),
    }


def test_a_folder_opens_by_its_whole_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ASSETS)
    assert viewed(link("./stories", TEXT)) == ("", str(ASSETS / "stories"), TEXT)


def test_a_folder_that_is_called_like_a_trace_file_opens_as_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "stories.safetensors"
    folder.symlink_to(ASSETS / "stories")
    assert viewed(link(str(folder), TEXT)) == ("", str(folder.resolve()), TEXT)


def test_a_recorded_file_holds_the_pass_of_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, file = tmp_path / "text.txt", tmp_path / "trace.safetensors"
    text.write_text(f"{TEXT}\n", encoding="utf-8-sig")  # the mark is no letter of the text
    model = load_model("stories")
    main(["record", "stories", str(text), "-o", str(file)])
    assert file.read_bytes() == trace_file(model.trace(TEXT))
    assert f"Wrote {file}" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
    main(["record", "stories", "-", "-o", str(file), "--full"])
    assert read_trace(file.read_bytes()).feed_forward
    main(["record", "stories", str(text), "-o", str(tmp_path / "lines"), "--lines"])
    assert [one.name for one in (tmp_path / "lines").iterdir()] == ["001.safetensors"]
    opened = parse_qs(link(str(file), None).partition("?")[2])
    assert opened == {"model": [str(file)]}
    monkeypatch.setenv("ATTENTION_FOLDERS", "off")
    with pytest.raises(ValueError, match="ATTENTION_FOLDERS"):
        link(str(file), None)


def test_the_standard_output_gets_a_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def talks(name: str) -> Model:
        print("a line of a library")
        return load_model(name)

    monkeypatch.setattr("model.loading.record.load_model", talks)
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    main(["record", "stories", str(tmp_path / "text.txt"), "-o", "-"])
    told = capfdbinary.readouterr()
    assert told.out == trace_file(load_model("stories").trace(TEXT))
    assert b"a line of a library" in told.err


@pytest.mark.parametrize("name", ["record", "profile", "papers", "open", "mcp", "site", "check"])
def test_ctrl_c_ends_a_command_with_130_and_no_traceback(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for place in (
        "model.loading.record.load_model",
        "model.profile.run.load_model",
        "model.loading.registry.load_model",
        "viz.server.starting.run_server",
        "viz.chat.server.ChatServer.run",
        "viz.site.course.read_course",
        "viz.saving.certificate.check",
        "viz.saving.certificate.certificate_in",
    ):
        monkeypatch.setattr(place, stopped)
    file = tmp_path / "text.txt"
    file.write_text(TEXT, encoding="utf-8")
    takes = {
        "record": ["stories", str(file), "-o", str(tmp_path / "o")],
        "profile": ["stories", str(file), "-o", str(tmp_path / "o")],
        "papers": ["stories"],
        "site": [str(tmp_path / "site")],
        "check": [str(file)],
    }
    with pytest.raises(SystemExit) as ended:
        main([name, *takes.get(name, [])])
    assert ended.value.code == 130
    assert capsys.readouterr().err.startswith(f"{program()} {name}: ")


def test_a_profile_of_a_corpus_is_written(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("A B C A B C\n", encoding="utf-8")
    main(["profile", "induction", str(tmp_path / "corpus.txt"), "-o", str(tmp_path / "made")])
    made = open_profile(tmp_path / "made")
    model = load_model("induction")
    assert made.sums.tokens == len(model.tokens("A B C A B C"))
    assert len(made.heads) == sum(layer.heads for layer in model.trace("A B").attention)


@pytest.mark.parametrize(("line", "said"), [
    (["no-such-model", "text"], "There is no model 'no-such-model'"),
    (["recrod", "stories", "text", "-o", "{folder}/o"], "did you mean 'record'?"),
    (["storeis", "text"], "did you mean 'stories'?"),
    (["{folder}/damagd.safetensors"], "did you mean 'damaged.safetensors'?"),
    (["{folder}", "text"], "no config.json"),
    (["house-gpt", "a" * (TEXT_LIMIT + 1)], "at most 20,000 are read"),
    (["house-gpt", "é" * (TEXT_LIMIT - 1)], "too long for a link"),
    (["{folder}/none.safetensors"], "There is no file none.safetensors"),
    (["{folder}/damaged.safetensors"], "trace"),
    (["{folder}/damaged.safetensors", "text"], "A trace file has its own text"),
    (["open", "house-gpt", "text", "--port", "70000"], "must be a number from 1 to 65535"),
    (["house-gpt", "text", "more"], "Unrecognized arguments: more"),
    (["record", "house-gpt", "{folder}/none.txt", "-o", "{folder}/o"], "There is no file none.txt"),
    (["record", "house-gpt", "{folder}/odd.txt", "-o", "{folder}/o"], "is not a text in UTF-8"),
    (["record", "house-gpt", "{folder}/empty.txt", "-o", "{folder}/o"], "sentence"),
    (["record", "nothing", "{folder}/good.txt", "-o", "{folder}/o"], "There is no model"),
    (["record", "stories", "{folder}/good.txt", "-o", "{folder}/no/o"], "There is no folder"),
    (["record", "stories", "{folder}/good.txt", "-o", "{folder}"], "is a folder"),
    (["record", "stories", "{folder}/good.txt"], "required: -o"),
    (["record", "stories", "{folder}/god.txt", "-o", "o"], "did you mean 'good.txt'?"),
    (["record", "stories", "{folder}/good.txt", "-o", "-", "--lines"], "folder: -o"),
    (["check", "{folder}/god.txt"], "did you mean 'good.txt'?"),
    (["chekc", "picture.png", "more.png"], "did you mean 'check'?"),
    (["site", "-"], "--lesson"),
    (["profile", "stories", "{folder}/good.txt", "-o", "-"], "folder: -o"),
    (["profile", "stories", "{folder}/good.txt"], "required: -o"),
    (["profile", "stories", "{folder}/none.txt", "-o", "{folder}/o"], "none.txt"),
    (["mcp", "no-such-model"], "There is no model 'no-such-model'"),
    (["mcp", "house-gpt", "{folder}"], "no config.json"),
    (["mcp", "{folder}/damaged.safetensors"], "A trace file reads no other text"),
    (["mcp", "--http"], "Unrecognized arguments: --http"),
])  # fmt: skip
def test_bad_input_gets_a_sentence_and_exit_code_2(
    line: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "damaged.safetensors").write_bytes(b"\x08" + bytes(20))
    (tmp_path / "odd.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "good.txt").write_bytes(b"Once upon a time")
    with pytest.raises(SystemExit) as ended:
        main([part.format(folder=tmp_path) for part in line])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    name = line[0] if line[0] in COMMANDS else ""
    assert told.startswith(f"{program()} {name}".rstrip() + ": ")
    assert told.count("\n") == 1


def test_the_tree_has_the_same_command_and_says_its_version() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "viz.command", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    version = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]
    assert ended.stdout == f"attention-lens {version}\n"
