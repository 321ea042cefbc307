"""A picture's certificate: read from its file, held against the model, refused where it is damaged."""

import base64
import html
import json
import os
import struct
import zlib
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from model import Intervention, load_model
from model.run.recorded import RecordedModel
from model.run.weights_hash import fingerprint
from model.serving.engine import Request
from model.trace.arrays import Array
from model.trace.trace_file import load_trace
from tests.cases import cases
from viz.command.command import main
from viz.saving.certificate import KEY, NOT_COMPARED, certificate_in, check, compared, run_facts
from viz.saving.offline_page import head_picture
from viz.saving.save import code_to_scan

TEXT = "Anna saw the cat and the dog saw Anna"
CHANGES = [
    Intervention(),
    Intervention(mask="none"),
    Intervention(ablated=frozenset({("decoder.0.self", 1)})),
]
PLACE, HEAD, STAGE = "decoder.2.self", 3, "weights"


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png(text: str) -> bytes:
    """A file of PNG with this text in it, as an image editor would see it."""
    said = chunk(b"iTXt", KEY.encode() + b"\0\0\0\0\0" + text.encode())
    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(b"\0\0")
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", pixel)
        + said
        + chunk(b"IEND", b"")
    )


def svg(text: str) -> bytes:
    return f'<svg><metadata id="{KEY}">{html.escape(text)}</metadata><rect/></svg>'.encode()


def pdf(text: str, packs: bool = False) -> bytes:
    """A PDF with this text attached, as the browser writes it or as a program that packs it does."""
    content = zlib.compress(text.encode()) if packs else text.encode()
    about = "/Filter /FlateDecode " if packs else ""
    said = f"6 0 obj\n<< /Type /EmbeddedFile {about}/Length {len(content)} >>\nstream\n".encode()
    other = b"5 0 obj\n<< /Length 4 >>\nstream\nq  Q\nendstream\nendobj\n"
    return b"%PDF-1.7\n" + other + said + content + b"\nendstream\nendobj\n%%EOF\n"


def packed_pdf(text: str) -> bytes:
    return pdf(text, packs=True)


def packed(values: Array) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode()


def said_of(
    intervention: Intervention = Intervention(), model: str = "house-gpt", step: int = 1
) -> dict[str, object]:
    """What the browser writes of the model's own numbers."""
    opened = load_model(model)
    runs = [opened.trace(TEXT, intervention=intervention)]
    if intervention.changes:
        runs.append(opened.trace(TEXT))
    layers = [run.find(PLACE) for run in runs]
    words = [token.text for token in runs[0].tokens]
    picture = head_picture(
        layers[0], *(layers[1:] or [None]), head=HEAD, stage="weights", queries=words, keys=words
    )
    facts = run_facts(Request(model, TEXT, intervention=intervention), opened)
    assert facts is not None
    rows, columns = next(iter(picture.runs.values())).shape
    numbers = [[run, packed(values[::step, ::step])] for run, values in picture.runs.items()]
    sizes = {"rows": rows, "columns": columns, "step": step, "panels": numbers}
    return {"made_by": KEY, **facts, "place": PLACE, "head": HEAD, "stage": STAGE, **sizes}


def changed(said: Mapping[str, object], cell: int, to: float, run: int = 0) -> dict[str, object]:
    """With another number in one cell."""
    panels = json.loads(json.dumps(said["panels"]))
    values = np.frombuffer(base64.b64decode(panels[run][1]), "<f4").copy()
    values[cell] = to
    panels[run][1] = packed(values)
    return {**said, "panels": panels}


def sized(rows: int, columns: int, numbers: str) -> str:
    """A certificate of these sizes, with these letters for its numbers."""
    facts = {"step": 1, "head": 0, "link": {}, "place": PLACE, "stage": STAGE, "weights": ""}
    return json.dumps(
        {"rows": rows, "columns": columns, "panels": [["unchanged", numbers]], **facts}
    )


@cases("write, intervention", product([png, svg, pdf, packed_pdf], CHANGES))
def test_the_models_own_numbers_hold(write, intervention) -> None:
    said = said_of(intervention)
    verdict = check(certificate_in(write(json.dumps(said))))  # type: ignore[operator]
    assert verdict.holds
    assert verdict.numbers == len(said["panels"]) * said["rows"] * said["columns"]  # type: ignore[arg-type, operator]
    assert verdict.largest <= verdict.allowed < 1e-3
    assert "hold" in str(verdict)


def test_of_a_large_picture_every_second_number_is_held_against_its_own_cell() -> None:
    numbers = np.arange(300 * 300, dtype=np.float32).reshape(300, 300) / 300**2
    shown = numbers[::2, ::2].copy()
    shown[3, 5] += 0.1
    said = json.loads(sized(300, 300, packed(shown))) | {"step": 2}
    verdict = compared(certificate_in(png(json.dumps(said))), {"unchanged": numbers}, 1e-6)
    (wrong,) = verdict.differing
    assert (wrong.row, wrong.column) == (6, 10)
    assert (verdict.numbers, verdict.drawn) == (150**2, 300**2)


def test_a_certificate_of_fewer_numbers_than_the_browser_writes_is_refused() -> None:
    said = said_of(step=3)
    rows = int(str(said["rows"]))
    with pytest.raises(ValueError, match=f"holds {(-(-rows // 3)) ** 2} of {rows**2} numbers"):
        certificate_in(png(json.dumps(said)))


def test_the_verdict_says_which_numbers_were_compared_and_that_words_were_not() -> None:
    verdict = check(certificate_in(svg(json.dumps(said_of()))))
    assert f"{verdict.numbers} of {verdict.numbers} numbers" in str(verdict)
    assert f"{STAGE} of {PLACE}, head {HEAD}" in str(verdict)
    assert NOT_COMPARED in str(verdict)


@cases("repeated", (b"<<", b"<</EmbeddedFile ", b"<</EmbeddedFile>>stream\n", b">>" + b" " * 9))
def test_a_pdf_without_an_end_is_read_once(repeated) -> None:
    """Each of them took the square of its length: 400 kB would be minutes."""
    with pytest.raises(ValueError, match="no certificate"):
        certificate_in(b"%PDF-1.7\n" + repeated * (400_000 // len(repeated)))


def test_streams_that_unpack_to_more_than_a_picture_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("viz.saving.certificate.LARGEST", 1_000_000)
    packed_zeros = zlib.compress(bytes(900_000))
    begins = b" obj<< /EmbeddedFile /FlateDecode >>\nstream\n"
    many = (begins + packed_zeros + b"endstream") * 3
    with pytest.raises(ValueError, match="no certificate"):
        certificate_in(b"%PDF-1.7\n" + many + pdf(json.dumps(said_of())))


@cases("value", [0.9, float("nan")])
def test_a_number_that_the_model_does_not_give_is_named(value) -> None:
    said = said_of()
    columns = int(str(said["columns"]))
    verdict = check(certificate_in(png(json.dumps(changed(said, 3 * columns + 1, value)))))
    (wrong,) = verdict.differing
    assert (wrong.run, wrong.row, wrong.column) == ("unchanged", 3, 1)
    assert not verdict.holds
    assert str(verdict).startswith(f"1 of {verdict.numbers} ")
    assert ("masked in" if np.isnan(value) else "0.9000 in") in str(verdict)


def test_a_number_behind_the_mask_is_named() -> None:
    (wrong,) = check(certificate_in(png(json.dumps(changed(said_of(), 1, 0.5))))).differing
    assert (wrong.row, wrong.column, wrong.pictured) == (0, 1, 0.5)
    assert np.isnan(wrong.computed)


@cases("other, sentence", [
    ({"weights": "0" * 64}, "other weights"),
    ({"head": 400}, "has 8 heads"),
    ({"place": "decoder.9.self"}, "decoder.9.self"),
    ({"stage": "everything"}, "cannot be compared"),
    ({"link": {"model": "no-such-model", "text": TEXT}}, "no such model"),
    ({"link": {"model": "house-gpt", "text": "Anna saw"}}, "other rows and columns"),
    ({"link": {"model": "house-gpt", "text": TEXT, "scale": "wide"}}, "link cannot be read"),
])  # fmt: skip
def test_a_run_that_cannot_be_made_again_is_refused(other, sentence) -> None:
    said = {**said_of(), **other}
    with pytest.raises(ValueError, match=sentence):
        check(certificate_in(png(json.dumps(said))))


def test_a_damaged_certificate_is_refused(subtests: pytest.Subtests) -> None:
    for said in [
        "",
        "[]",
        "null",
        '{"rows": 1}',
        "[" * 5000,
        '{"rows": NaN}',
        sized(1, 1, "AAAAAA==").replace('"rows": 1', '"rows": 1e400'),
        sized(1, 1, "AAAAAA==").replace("unchanged", "\x1b[2J"),
        sized(1, 1, "AAAAAA==").replace("decoder", "\\u001b]0;"),
        sized(10**9, 10**9, ""),
        sized(2, 2, "AAAA"),
        sized(0, 2, ""),
        sized(1, 1, "%%%"),
    ]:
        with subtests.test(said=said), pytest.raises(ValueError, match="damaged"):
            certificate_in(png(said))


@cases("cut", [0, 8, 20, 60])
def test_a_file_without_a_certificate_is_refused(cut) -> None:
    with pytest.raises(ValueError, match="no certificate"):
        certificate_in(png("{}")[:cut])


def test_a_chunk_whose_checksum_is_wrong_is_not_read() -> None:
    file = bytearray(png(json.dumps(said_of())))
    file[file.index(b"made_by")] ^= 1
    with pytest.raises(ValueError, match="no certificate"):
        certificate_in(bytes(file))


def test_a_run_that_no_link_makes_again_has_no_certificate(tmp_path: Path) -> None:
    model = load_model("house-gpt")
    assert run_facts(Request("house-gpt", TEXT, continued=(3,)), model) is None
    model.trace(TEXT).save(tmp_path / "run.safetensors")
    recorded = RecordedModel("run.safetensors", load_trace(tmp_path / "run.safetensors"))
    assert run_facts(Request("run.safetensors", TEXT), recorded) is None


def test_other_weights_have_another_fingerprint() -> None:
    house = fingerprint(load_model("house-gpt"))
    assert house == fingerprint(load_model("house-gpt"))
    assert len({house, *(fingerprint(load_model(name)) for name in ("stories", "induction"))}) == 3


def test_the_command_says_of_each_picture_whether_its_numbers_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_of()
    good, wrong = (json.dumps(one) for one in (said, changed(said, 0, 0.5)))
    for name, content in {"good.png": png(good), "wrong.svg": svg(wrong), "no.png": b"x"}.items():
        (tmp_path / name).write_bytes(content)

    def status(*names: str) -> object:
        with pytest.raises(SystemExit) as ended:
            main(["check", *(str(tmp_path / name) for name in names)])
        return ended.value.code

    assert status("good.png") == 0
    assert "numbers hold" in capsys.readouterr().out
    assert status("good.png", "wrong.svg") == 1
    assert "do not hold" in capsys.readouterr().out
    assert status("wrong.svg", "good.png") == 1  # whichever comes last
    capsys.readouterr()
    assert status("no.png", "missing.png") == 2
    heard = capsys.readouterr().err
    assert "no certificate" in heard
    assert "no file missing.png" in heard


def test_what_is_no_picture_is_refused_at_once_and_moves_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(6 * 10**9)  # zeros, of which the disk keeps none
    (tmp_path / "\x1b[2J.png").write_bytes(b"x")
    pictures = sorted(tmp_path.iterdir())
    with pytest.raises(SystemExit) as ended:
        main(["check", *map(str, pictures)])
    assert ended.value.code == 2
    heard = capsys.readouterr().err
    assert heard.isascii()
    assert len(heard.splitlines()) == len(pictures) == 4
    assert all(letter.isprintable() for line in heard.splitlines() for letter in line)


def test_a_code_to_scan_is_the_links_own_and_a_link_too_long_for_one_has_none() -> None:
    rows = code_to_scan("http://127.0.0.1:8501/attention?head=3")
    assert rows is not None
    assert {len(row) for row in rows} == {len(rows)}
    finder = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"]
    assert [row[:7] for row in rows[:7]] == finder  # ISO 18004, 5.3.2
    assert rows != code_to_scan("http://127.0.0.1:8501/attention?head=4")
    assert code_to_scan("http://127.0.0.1:8501/attention?text=" + "a" * 3_000) is None
