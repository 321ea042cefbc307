"""The notes: the documents that the worked examples come from, and where in them something stands."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Document:
    """One of the sets of notes. `about` says what it is and where its name comes from."""

    title: str
    about: str

    def at(self, part: str) -> Source:
        """A part of this document, by its heading or its class."""
        return Source(self, part)


@dataclass(frozen=True)
class Source:
    """Where in the notes something stands."""

    document: Document
    part: str

    def __str__(self) -> str:
        return f"“{self.document.title}”, {self.part}"


MATRICES = Document(
    "Matrix Calculation of Self-Attention",
    "A notebook, called here by its first heading: self-attention and its heads as matrices, a "
    "class SelfAttention written with einsum, layer norm, GELU, and a class TransformerBlock.",
)
INTRODUCTION = Document(
    "Introduction to transformers",
    "A notebook of sums done by hand: “The cat sat”, scaling, positions, layer norm, the masks of a "
    "decoder, and the step from the last vector to a word.",
)
GPT = Document(
    "Tokenization, attention, building a GPT model",
    "Notes on three chapters of a book, 2 to 4, called here by the chapters' titles: windows and "
    "embeddings, attention step by step up to several heads, and a GPT model.",
)
PAPER = Document(
    "Original transformer architecture",
    "A notebook on the paper “Attention is all you need”: one class MultiHeadAttention, with a walk "
    "through its shapes in the comments.",
)
TWO_LAYERS = Document(
    "TwoLayerTransformer",
    "A notebook without a title, called here by its last class: a class MultiHeadAttention "
    "explained name by name, a lesson on the softmax, and a model of two layers.",
)
DOCUMENTS = (MATRICES, INTRODUCTION, GPT, PAPER, TWO_LAYERS)


def quoted(file: str) -> Iterator[dict[str, Any]]:
    """The entries of a file beside this one that says what the notes have; each with its `source`."""
    documents = {document.title: document for document in DOCUMENTS}
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    for entry in tomllib.loads(text)["quoted"]:
        yield {"source": documents[entry.pop("document")].at(entry.pop("part")), **entry}
