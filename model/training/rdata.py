"""Reads the little of R's serialization format (version 2 and 3, XDR) that a table of texts needs.

Source: the R Internals manual, section "Serialization Formats".
"""

import struct

Value = object

_NIL, _SYMBOL, _PAIRS, _TEXT, _LOGICAL, _INTEGER, _TEXTS, _LIST = 0, 1, 2, 9, 10, 13, 16, 19
_NIL_VALUE, _REFERENCE = 254, 255


def read(serialized: bytes) -> Value:
    """The value as Python has it: lists with names become dicts, vectors become lists.

    Raises ValueError for any type that is not one of texts, integers, truth values and lists.
    """
    if serialized[:2] != b"X\n":
        raise ValueError("This is not R data in the XDR format.")
    reader = _Reader(serialized)
    return reader.value()


def table(value: Value) -> dict[str, Value]:
    """The value as named items. Raises ValueError if it has no names."""
    if not isinstance(value, dict):
        raise ValueError("R data with names was expected.")
    return value


def texts(value: Value) -> list[str]:
    """The value as a list of texts. Raises ValueError if it is none."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("A list of texts was expected.")
    return value


def integers(value: Value) -> list[int]:
    """The value as a list of integers. Raises ValueError if it is none."""
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise ValueError("A list of integers was expected.")
    return value


class _Reader:
    def __init__(self, serialized: bytes) -> None:
        self._bytes = serialized
        self._at = 2
        self._symbols: list[str] = []
        version = self._integer()
        self._at += 8  # the versions of R that wrote it and that can read it
        if version == 3:
            self._take(self._integer())  # the name of the encoding

    def value(self) -> Value:
        flags = self._integer()
        kind, has_attributes = flags & 0xFF, bool(flags & 0x200)
        if kind in (_NIL, _NIL_VALUE):
            return None
        if kind == _REFERENCE:
            return self._symbols[(flags >> 8) - 1]
        if kind == _SYMBOL:
            self._symbols.append(str(self.value()))
            return self._symbols[-1]
        if kind == _TEXT:
            length = self._integer()
            return self._take(length).decode("utf-8", "replace") if length >= 0 else ""
        if kind == _PAIRS:
            return self._pairs(flags)
        return self._vector(kind, has_attributes)

    def _vector(self, kind: int, has_attributes: bool) -> Value:
        if kind not in (_LOGICAL, _INTEGER, _TEXTS, _LIST):
            raise ValueError(f"R type {kind} at byte {self._at} is not read here.")
        read_one = self._integer if kind in (_LOGICAL, _INTEGER) else self.value
        items = [read_one() for _ in range(self._integer())]
        attributes = self.value() if has_attributes else None
        names = attributes.get("names") if isinstance(attributes, dict) else None
        return dict(zip(names, items, strict=True)) if isinstance(names, list) else items

    def _pairs(self, flags: int) -> dict[str, Value]:
        """A chain of (tag, value) cells that ends in nil."""
        pairs: dict[str, Value] = {}
        while flags & 0xFF == _PAIRS:
            if flags & 0x200:
                self.value()
            tag = str(self.value()) if flags & 0x400 else str(len(pairs))
            pairs[tag] = self.value()
            flags = self._integer()
        return pairs

    def _integer(self) -> int:
        return int(struct.unpack(">i", self._take(4))[0])

    def _take(self, length: int) -> bytes:
        self._at += length
        return self._bytes[self._at - length : self._at]
