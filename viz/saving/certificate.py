"""A saved picture's certificate: what its numbers were made from, and the numbers, inside the file.

The browser writes it into each PNG, SVG and PDF of a head (viz/explorer/js/certificate.js). `check` runs the
model again and says whether the numbers hold.
"""

import base64
import html
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from model.analysis.run_comparison import rounding_of_weights
from model.nn.intervention import Intervention
from model.run.weights_hash import fingerprint
from model.serving.engine import Request
from model.trace.arrays import Array
from viz.notation.formulas import StageName
from viz.notation.numbers import counted, difference, number
from viz.notation.words import sentences_of
from viz.saving.offline_page import picture_of_runs
from viz.state.link import View, from_link, to_link

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("saving.certificate")

KEY = "attention-lens"
LARGEST = 64 * 2**20  # bytes of a picture
_PNG = b"\x89PNG\r\n\x1a\n"
_PDF = b"%PDF-"
_STREAM = re.compile(rb">>[\r\n ]{0,4}stream\r?\n")
_DICTIONARY = 2_000  # bytes before a stream that describe it, at most
_METADATA = re.compile(rf'<metadata id="{KEY}">([^<]*)</metadata>'.encode())
_WHOLE = (
    2**16
)  # numbers of a panel up to which every one is written; of more, every n-th row and column
NOT_COMPARED = say("title_words_colours")
_NAMED = 3  # numbers that do not hold


def run_facts(request: Request, model: "Model") -> dict[str, object] | None:
    """What a certificate says of a run: the model, its weights and the link that makes the run again. None
    where no link does: the model wrote on, or only a recorded run is at hand."""
    if request.continued or not model.runs:
        return None
    view = View(
        text=request.text,
        model=request.model,
        target=request.target,
        languages=" ".join(request.languages),
        intervention=request.intervention,
    )
    cell = ("query", "key")
    link = {name: value for name, value in to_link(view).items() if name not in cell}
    facts = {"text": request.text, "model": request.model}
    return {"link": link | facts, "weights": fingerprint(model)}


CertificateLine = Annotated[str, Field(max_length=1_000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
PictureSize = Annotated[int, Field(ge=1, le=10**6)]


class Certificate(BaseModel):
    """What a picture says of itself, as the browser writes it. step: only every so many rows and columns have
    numbers, of a picture of many."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)

    link: dict[CertificateLine, str]
    weights: Annotated[str, Field(max_length=100)]
    place: CertificateLine
    head: Annotated[int, Field(ge=0, lt=10_000)]
    stage: CertificateLine
    rows: PictureSize
    columns: PictureSize
    step: PictureSize
    written: Annotated[
        list[tuple[CertificateLine, str]], Field(min_length=1, max_length=3, alias="panels")
    ]

    @cached_property
    def panels(self) -> Mapping[str, Array]:
        """The numbers of each run, float32, (row, column), NaN where a cell is masked. Raises ValueError
        where they are more or fewer than its sizes say."""
        shape = -(-self.rows // self.step), -(-self.columns // self.step)
        panels = {}
        for run, written in self.written:
            if len(written) != 4 * -(-4 * shape[0] * shape[1] // 3):
                raise ValueError("there are more or fewer numbers")
            content = base64.b64decode(written, validate=True)
            panels[run] = np.frombuffer(content, "<f4").astype(np.float32).reshape(shape)
        return panels

    @property
    def about(self) -> str:
        """Which numbers these are: “weights of decoder.1.self, head 7; unchanged”."""
        return f"{self.stage} of {self.place}, head {self.head}; {', '.join(self.panels)}"


class Differing(NamedTuple):
    """A number of a picture that the model does not give."""

    run: str
    row: int
    column: int
    pictured: float
    computed: float

    def __str__(self) -> str:
        where = f"row {self.row}, column {self.column}"
        run = "" if self.run == "unchanged" else f" of “{self.run}”"
        pictured, computed = (
            "masked" if np.isnan(value) else number(value)
            for value in (self.pictured, self.computed)
        )
        return say("picture", where=where, run=run, pictured=pictured, computed=computed)


@dataclass(frozen=True)
class PictureCheck:
    """What `check` found. about: which numbers these are, in a clause; numbers: how many were compared, of
    `drawn` ones; largest: the largest difference between a picture's numbers and the model's; allowed: what
    rounding explains."""

    about: str
    numbers: int
    drawn: int
    largest: float
    allowed: float
    differing: tuple[Differing, ...]

    @property
    def holds(self) -> bool:
        return not self.differing

    def __str__(self) -> str:
        largest = say("largest_difference", largest=self.largest)
        allowed = f"rounding explains {difference(self.allowed)}. {NOT_COMPARED}"
        of_all = f"{self.numbers:,} of {counted(self.drawn, 'number')}"
        if self.holds:
            return f"{of_all} hold ({self.about}). {largest}; {allowed}"
        first = "; ".join(map(str, self.differing[:_NAMED]))
        count = say("not_hold", differing=len(self.differing), numbers=self.numbers)
        return f"{count} ({self.about}). {largest}; {allowed} The first: {first}."


def certificate_in(file: bytes) -> Certificate:
    """The certificate of a PNG, SVG or PDF. Raises ValueError, with a sentence, where there is none that can
    be read."""
    if len(file) > LARGEST:
        raise ValueError(f"The picture has more than {LARGEST / 2**20:.0f} MB.")
    if file.startswith(_PNG):
        written = _in_png(file)
    elif file.startswith(_PDF):
        written = _in_pdf(file)
    else:
        found = _METADATA.search(file)
        written = None if found is None else html.unescape(found[1].decode(errors="replace"))
    if written is None:
        raise ValueError(
            "This file has no certificate. The PNG, SVG and PDF files that are saved beside the picture of a "
            "head have one."
        )
    return _read(written)


def _in_png(file: bytes) -> str | None:
    for kind, content in _chunks(file):
        name, _, rest = content.partition(b"\0")
        if kind == b"iTXt" and name == KEY.encode() and rest.startswith(b"\0\0\0\0"):
            return rest[4:].decode(errors="replace")
    return None


def _chunks(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and content of each chunk of a PNG whose checksum is right, up to one that is cut off."""
    at = len(_PNG)
    while at + 12 <= len(file):
        (length,) = struct.unpack_from(">I", file, at)
        end = at + 8 + length
        if end + 4 > len(file):
            return
        if struct.unpack_from(">I", file, end)[0] == zlib.crc32(file[at + 4 : end]):
            yield file[at + 4 : at + 8], file[at + 8 : end]
        at = end + 4


def _in_pdf(file: bytes) -> str | None:
    """The first file attached to a PDF that names this app, as the browser writes it or packed since. Each
    byte is looked at once, and what is unpacked is bounded for all of them together."""
    at, left = 0, LARGEST
    while (begins := _STREAM.search(file, at)) is not None:
        at = file.find(b"endstream", begins.end())
        if at < 0:
            return None
        about = file[max(0, begins.start() - _DICTIONARY) : begins.start()].rpartition(b" obj")[2]
        if b"/EmbeddedFile" not in about:
            continue
        content = file[begins.end() : at]
        if b"/FlateDecode" in about:
            with suppress(zlib.error):
                content = zlib.decompressobj().decompress(content, left)
            if (left := left - len(content)) <= 0:
                return None
        if KEY.encode() in content:
            return content.decode(errors="replace")
    return None


def _read(text: str) -> Certificate:
    """Raises ValueError where a text is none, or holds fewer numbers than the browser writes."""
    try:
        read = Certificate.model_validate_json(text)
        count = next(iter(read.panels.values())).size
    except ValueError as error:
        raise ValueError("The certificate of this picture is damaged.") from error
    drawn = read.rows * read.columns
    if read.step > ceil(sqrt(max(1, drawn / _WHOLE))):
        raise ValueError(
            f"The certificate of this picture holds {count:,} of {counted(drawn, 'number')}, "
            "fewer than are written into a picture: it was changed."
        )
    return read


def check(certificate: Certificate) -> PictureCheck:
    """Runs the model again and compares every number. Raises ValueError, with a sentence, where that cannot
    be: the model is not at hand, has other weights, or cannot read the text."""
    from model.loading.registry import load_model

    view, unread = from_link(certificate.link)
    if unread:
        raise ValueError(f"The certificate's link cannot be read. {unread[0]}")
    model = load_model(view.model)
    if fingerprint(model) != certificate.weights:
        raise ValueError(f"{view.model} has other weights here than those of the picture.")
    if view.languages:
        model = model.translating(*view.languages.split())
    trace = model.trace(view.text, view.target, view.intervention)
    runs = [trace]
    if view.intervention.changes:
        runs.append(model.trace(view.text, view.target, Intervention()))
    # The picture's numbers, made from these runs, by run.
    attention = runs[0].find(certificate.place)
    if certificate.head >= attention.heads:
        raise ValueError(f"{certificate.place} has {attention.heads} heads.")
    stage = cast(StageName, certificate.stage)
    picture = picture_of_runs(
        model, runs, place=certificate.place, head=certificate.head, stage=stage
    )
    if picture.stage.name != certificate.stage or picture.block != (1, 1):
        raise ValueError(
            f"The stage “{certificate.stage}” of {certificate.place} cannot be compared."
        )
    return compared(certificate, picture.runs, rounding_of_weights(trace))


def compared(certificate: Certificate, computed: Mapping[str, Array], share: float) -> PictureCheck:
    """computed: the numbers of each run, (row, column), NaN where masked. share: of the largest number of a
    run, by which rounding may move a number. Raises ValueError where the sizes or the runs are others."""
    numbers, largest, allowed = 0, 0.0, 0.0
    differing: list[Differing] = []
    scale = max(1.0, *(float(np.nanmax(np.abs(one), initial=0.0)) for one in computed.values()))
    for run, pictured in certificate.panels.items():
        ours = computed.get(run)
        if ours is None or ours.shape != (certificate.rows, certificate.columns):
            raise ValueError(
                "The picture has other runs, or other rows and columns, than are computed here."
            )
        ours = ours[:: certificate.step, :: certificate.step]
        gaps = np.abs(pictured.astype(np.float64) - ours)
        gaps[np.isnan(pictured) & np.isnan(ours)] = 0.0
        gaps[np.isnan(gaps)] = np.inf  # masked in one of both
        bound = share * scale
        numbers += gaps.size
        largest, allowed = max(largest, float(gaps.max())), max(allowed, bound)
        for row, column in np.argwhere(gaps > bound):
            cell = int(row) * certificate.step, int(column) * certificate.step
            values = float(pictured[row, column]), float(ours[row, column])
            differing.append(Differing(run, *cell, *values))
    drawn = len(certificate.panels) * certificate.rows * certificate.columns
    return PictureCheck(certificate.about, numbers, drawn, largest, allowed, tuple(differing))
