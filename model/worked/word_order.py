"""Why sine and cosine come in pairs, rotary positions, and what is lost without any."""

from __future__ import annotations

import math

import numpy as np

from model.arithmetic import attention, positions
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Array, Step, Values, given, numbered, worked

_DIMENSIONS = numbered("dim", 4)
_LION = ("Lion", "kills", "tiger")


@worked(
    "shift-is-a-rotation",
    "§8",
    "Why sine and cosine",
    "A sine alone is ambiguous. With its cosine, moving by some positions is a rotation.",
    given("position", "Position", 3, lowest=0, highest=1000),
    given("shift", "Shift", 2, lowest=-1000, highest=1000),
    given("rate", "Angle for one position", 0.3, lowest=0, highest=3),
)
def _shift(values: Values) -> tuple[Step, ...]:
    position, shift, rate = (float(values[name]) for name in ("position", "shift", "rate"))
    angle = position * rate
    here, there = positions.pair(angle), positions.pair(angle + shift * rate)
    mirror = positions.pair(math.pi - angle)
    turn = shift * rate
    matrix = positions.shift_matrix(turn)
    moved = matrix @ here
    names = ("sine", "cosine")
    return (
        Step("Two angles with the same sine", r"\sin(a) = \sin(\pi - a)", np.stack([here, mirror]),
             rf"\sin({latex.number(angle)}) = \sin(\pi - {latex.number(angle)}) = "
             rf"{latex.number(here[0])}", ("a", "π − a"), names,
             comment="Sine alone cannot tell these two apart; the cosine can."),
        Step("The rotation for this shift",
             r"\begin{bmatrix} \cos b & \sin b \\ -\sin b & \cos b \end{bmatrix}", matrix,
             rf"b = {latex.number(shift)} \cdot {latex.number(rate)} = {latex.number(turn)}",
             names, names, comment="It depends on the shift only, not on the position."),
        Step("The pair, rotated", r"R_b \begin{bmatrix} \sin a \\ \cos a \end{bmatrix}", moved,
             rf"\cos({latex.number(turn)}) \cdot {latex.factor(here[0])} + "
             rf"\sin({latex.number(turn)}) \cdot {latex.factor(here[1])} = {latex.number(moved[0])}",
             columns=names),
        Step("The pair at the shifted position",
             r"\begin{bmatrix} \sin(a + b) \\ \cos(a + b) \end{bmatrix}", there,
             rf"a + b = {latex.number(angle + shift * rate)}", columns=names),
        Step("Difference", r"\text{rotated} - \text{shifted}", moved - there,
             rf"\max |\text{{difference}}| = {latex.number(np.abs(moved - there).max())}",
             columns=names, comment="A pair of sine and cosine makes every shift a rotation."),
    )  # fmt: skip


@worked(
    "rotary-positions",
    "§8",
    "Rotary positions",
    "Rotary positions turn the query and the key themselves, "
    "so that the score depends on their distance.",
    given("query", "Query", [1, 0.5], "dim"),
    given("key", "Key", [0.8, -0.3], "dim"),
    given("m", "Position of the query", 5, lowest=0, highest=1000),
    given("n", "Position of the key", 2, lowest=0, highest=1000),
    given("shift", "Shift", 7, lowest=0, highest=1000),
    given("rate", "Angle for one position", 0.3, lowest=0, highest=3),
)
def _rotary(values: Values) -> tuple[Step, ...]:
    query, key = values["query"], values["key"]
    m, n, shift, rate = (float(values[name]) for name in ("m", "n", "shift", "rate"))
    places = ((m, n), (m + shift, n + shift), (m + shift, n))
    turned = np.stack([positions.rotated(query, m * rate), positions.rotated(key, n * rate)])
    scores = np.array(
        [positions.rotated(query, q * rate) @ positions.rotated(key, k * rate) for q, k in places]
    )
    return (
        Step(
            "Query and key, each turned by its position",
            r"R_{m\theta}\, q,\quad R_{n\theta}\, k",
            turned,
            rf"\cos({latex.number(m * rate)}) \cdot {latex.factor(query[0])} - "
            rf"\sin({latex.number(m * rate)}) \cdot {latex.factor(query[1])} = "
            rf"{latex.number(turned[0, 0])}",
            (f"query at {m:g}", f"key at {n:g}"),
            numbered("dim", 2),
        ),
        Step(
            "Their scores",
            r"(R_{m\theta}\, q) \cdot (R_{n\theta}\, k)",
            scores,
            latex.row(scores),
            columns=tuple(f"query {q:g}, key {k:g}" for q, k in places),
            quantity="score",
            comment="Moving both changes nothing; only the distance between them counts. "
            "(Rotary positions go beyond the notes.)",
        ),
    )


_TIGER = ("tiger", "kills", "Lion")


def _outputs(vectors: Array) -> Array:
    return attention.attend(vectors, vectors, vectors).output


@worked(
    "lion-kills-tiger",
    "§8",
    "Lion kills tiger, tiger kills lion",
    "Without positions attention sees a bag of words: who kills whom is lost.",
    given(
        "embedding",
        "Embeddings (chosen here)",
        [[1, 0.2, 0, 0.5], [0.3, 0.9, 0.4, 0], [0.1, 0, 1, 0.7]],
        _LION,
        _DIMENSIONS,
    ),
)
def _lion(values: Values) -> tuple[Step, ...]:
    vectors = values["embedding"]
    table = positions.sinusoidal(np.arange(3.0), 4)
    turned = vectors[::-1]
    plain, plain_turned = _outputs(vectors), _outputs(turned)
    placed, placed_turned = _outputs(vectors + table), _outputs(turned + table)

    def output(title: str, result: Array, words: tuple[str, ...]) -> Step:
        numbers = rf"\text{{{words[0]}: }} {latex.row(result[0])}"
        formula = r"\mathrm{softmax}\!\left(\frac{X X^\top}{\sqrt{d_k}}\right) X"
        return Step(title, formula, result, numbers, words, _DIMENSIONS, "output")

    return (
        output("Lion kills tiger, without positions", plain, _LION),
        output("Tiger kills lion, without positions", plain_turned, _TIGER),
        steps.difference(
            plain,
            plain_turned[::-1],
            "Difference word by word",
            _LION,
            _DIMENSIONS,
            comment="Without positions each word gets the same vector in both sentences.",
        ),
        output("Lion kills tiger, with positions", placed, _LION),
        output("Tiger kills lion, with positions", placed_turned, _TIGER),
        steps.difference(
            placed,
            placed_turned[::-1],
            "Difference with positions",
            _LION,
            _DIMENSIONS,
            comment="With positions the two sentences differ.",
        ),
    )
