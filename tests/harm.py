"""What can happen to a file of a model."""

from pathlib import Path


def remove(file: Path) -> None:
    file.unlink()


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def change_one_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-7] ^= 0x10
    file.write_bytes(content)
