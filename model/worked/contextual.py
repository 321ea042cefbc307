"""Contextual vectors: the same word gets another vector in another sentence."""

from __future__ import annotations

import numpy as np

from model.arithmetic import attention, learning
from model.worked import latex
from model.worked.example import Step, Values, given, numbered, worked

_DIMENSIONS = numbered("dim", 4)
_SENTENCES = ("first sentence", "second sentence")


@worked(
    "same-word-two-sentences",
    "§14",
    "The same word in two sentences",
    "Before attention a word has one fixed vector. After it the vector depends on the sentence.",
    given("word", "The word's vector (chosen here)", [1, 0.5, 0, 0.2], _DIMENSIONS),
    given(
        "first",
        "Neighbours in the first sentence (chosen here)",
        [[0.9, 0, 1, 0], [0.2, 0.8, 0.6, 0]],
        "neighbour",
        _DIMENSIONS,
    ),
    given(
        "second",
        "Neighbours in the second sentence (chosen here)",
        [[0, 0.3, -0.5, 1.2], [0.6, -0.7, 0, 0.9]],
        "neighbour",
        _DIMENSIONS,
    ),
)
def _same_word(values: Values) -> tuple[Step, ...]:
    word = values["word"]
    sentences = [np.vstack([word, values[name]]) for name in ("first", "second")]
    before = np.stack([word, word])
    runs = [attention.attend(vectors, vectors, vectors) for vectors in sentences]
    after = np.stack([run.output[0] for run in runs])
    weights = np.stack([run.weights[0] for run in runs])
    cosines = np.array([learning.cosine(*before), learning.cosine(*after)])
    return (
        Step("The word's vector before attention", r"x", before, latex.row(word), _SENTENCES,
             _DIMENSIONS, comment="A fixed vector for each word, whatever stands around it."),
        Step("Its weights", r"\mathrm{softmax}\!\left(\frac{x X^\top}{\sqrt{d_k}}\right)", weights,
             rf"\text{{first: }} {latex.row(weights[0])}", _SENTENCES,
             ("itself", "neighbour 0", "neighbour 1"), "weight"),
        Step("The word's vector after attention", r"z = a X", after,
             rf"\text{{first: }} {latex.row(after[0])}", _SENTENCES, _DIMENSIONS, "output",
             comment="A contextual vector: the neighbours are mixed in."),
        Step("Cosine similarity between the two sentences",
             r"\frac{u \cdot v}{\lVert u \rVert\, \lVert v \rVert}", cosines, latex.row(cosines),
             columns=("before attention", "after attention"),
             comment="1 means the same direction."),
    )  # fmt: skip
