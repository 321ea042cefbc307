"""The one door for files: ordinary ones of a known size are read; what is written is whole or not there."""

import errno
import json
import os
from pathlib import Path

import pytest

from model.system.files import (
    _clear,
    content_of,
    json_object,
    printable,
    text_of,
    whole_file,
    write_whole,
)
from tests.cases import cases


def test_only_ordinary_files_of_a_bounded_size_are_read(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "large").write_bytes(b"12345")
    for name in ("pipe", "zero", "large", "absent", "."):
        with subtests.test(name=name), pytest.raises(ValueError, match=r"\.$"):
            content_of(tmp_path / name, 4)
    assert content_of(tmp_path / "large", 5) == b"12345"


def test_a_text_is_read_without_the_mark_of_its_encoding(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfa")
    assert text_of(file, 9) == "a"
    file.write_bytes(b"\xff")
    with pytest.raises(ValueError, match="UTF-8"):
        text_of(file, 9)


@cases("content", (b"[" * 100_000, b'{"a": ' + b"9" * 5_000 + b"}", b"[]", b"\xff", b""))
def test_json_that_is_no_object_is_damaged(content, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"^is (damaged|nested)"):
        json_object(file)


def test_a_file_whose_writing_breaks_off_is_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_whole(file, b"whole")

    def breaks_off() -> None:
        with whole_file(file) as opened:
            opened.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        breaks_off()
    assert file.read_bytes() == b"whole"
    assert [*tmp_path.iterdir()] == [file]


def test_what_a_killed_writer_left_is_removed_by_the_next_and_a_living_ones_is_kept(
    tmp_path: Path,
) -> None:
    dead, others = tmp_path / ".a.html.0123abcd.part", tmp_path / ".of-somebody.part"
    dead.write_bytes(b"half")
    others.write_bytes(b"not ours")
    with whole_file(tmp_path / "first.html") as file:
        file.write(b"first")
        (living,) = tmp_path.glob(".first.html.*.part")
        _clear.cache_clear()  # as another process
        write_whole(tmp_path / "second.html", b"second")
        assert living.exists()
    names = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert names == {others.name: b"not ours", "first.html": b"first", "second.html": b"second"}


def test_a_link_stays_one_and_a_device_is_written_as_it_is(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(file)
    write_whole(link, b"a")
    assert link.is_symlink()
    assert file.read_bytes() == b"a"
    write_whole(Path(os.devnull), b"a")
    assert not Path(os.devnull).is_file()


def test_control_characters_are_written_out() -> None:
    assert printable("a\x1b[2J\u202eb\n") == "a\\x1b[2J\\u202eb\n"
    assert json.loads(f'"{printable("é 🦊")}"') == "é 🦊"
