"""Masks by themselves: padding, look-ahead, and their product."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Step, Values, numbered, token_ids, whole, worked
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION

_DECODER = INTRODUCTION.at("Decoder in transformers")
_SEQUENCES = ("first sequence", "second sequence")


def _positions(length: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return numbered("query", length), numbered("key", length)


def _mask(title: str, formula: str, allowed: Array, comment: str | None = None) -> Step:
    queries, keys = _positions(len(allowed))
    last = len(allowed) - 1
    return Step(
        title,
        formula,
        allowed,
        rf"M_{{\text{{query {last}}}}} = {latex.row(allowed[last])}",
        queries,
        keys,
        comment=comment,
        blocked=allowed == 0,
    )


def _sequence(ids: Array) -> Step:
    return Step(
        "Token ids",
        r"t_j",
        ids,
        latex.row(ids),
        columns=numbered("token", len(ids)),
        blocked=ids == 0,
    )


def _keys_only(real: Array) -> Array:
    return np.tile(real, (len(real), 1))


def _with_notes(step: Step, text: str, quotation: str) -> Step:
    return replace(step, notes=Printed(text, _DECODER, quotation))


@worked(
    "padding-mask",
    "§5",
    "The padding mask",
    "Short sequences are filled up with the padding token 0. The mask says which tokens are real.",
    token_ids("ids", "Token ids (0 is padding)", [[1, 2, 3], [4, 5, 0]], _SEQUENCES, "token"),
)
def _padding(values: Values) -> tuple[Step, ...]:
    ids = values["ids"]
    real = attention.padding_mask(ids)
    tokens = numbered("token", ids.shape[1])
    return (
        Step(
            "Token ids",
            r"t_j",
            ids,
            rf"{latex.row(ids[0])},\ {latex.row(ids[1])}",
            _SEQUENCES,
            tokens,
            notes=Printed("1 2 3; 4 5 0", _DECODER, "Sequence 2 [4,5,0]"),
            blocked=ids == 0,
        ),
        Step(
            "Padding mask of each sequence",
            r"m_j = 1\ \text{where token } j \ne 0",
            real,
            rf"{latex.row(ids[1])} \to {latex.row(real[1])}",
            _SEQUENCES,
            tokens,
            notes=Printed("1 1 1; 1 1 0", _DECODER, "seq 2 = [1 1 0]"),
            blocked=real == 0,
        ),
        _with_notes(
            _mask(
                "Second sequence, queries and keys masked",
                r"M_{ij} = m_i\, m_j",
                np.outer(real[1], real[1]),
            ),
            "1 1 0; 1 1 0; 0 0 0",
            "token 1,2->[1 1 0] [1 1 0] [0 0 0]",
        ),
        _mask(
            "Second sequence, keys masked only",
            r"M_{ij} = m_j",
            _keys_only(real[1]),
            "What implementations do: no row is then left without any key.",
        ),
    )


@worked(
    "look-ahead-mask",
    "§5",
    "The look-ahead mask",
    "Each query may look at itself and at what came before, never at what comes later.",
    whole("length", "Length", 3, 1, 12),
)
def _look_ahead(values: Values) -> tuple[Step, ...]:
    length = int(values["length"])
    allowed = attention.causal_mask(length)
    step = _mask(
        "Look-ahead mask",
        r"M_{ij} = 1\ \text{where } j \le i",
        allowed,
        "The future is not there when the model generates; "
        "in training the mask lets every position predict its next token in parallel.",
    )
    return (
        _with_notes(step, "1 0 0; 1 1 0; 1 1 1", "[[100] [110] [111]]"),
        Step(
            "The cells to be hidden",
            r"1 - M_{ij} = 1\ \text{where } j > i",
            1.0 - allowed,
            rf"\text{{query 0: }} {latex.row(1.0 - allowed[0])}",
            *_positions(length),
            comment="Ones strictly above the diagonal: the other way to write the same mask.",
        ),
        Step(
            "Keys each query may look at",
            r"\sum_j M_{ij} = i + 1",
            allowed.sum(axis=1),
            rf"\text{{query {length - 1}: }} {latex.number(allowed[-1].sum())}",
            columns=numbered("query", length),
        ),
    )


@worked(
    "combined-mask",
    "§5",
    "Padding and look-ahead together",
    "A cell is allowed where both masks allow it: multiply them cell by cell.",
    token_ids("ids", "Token ids (0 is padding)", [4, 5, 0]),
)
def _combined(values: Values) -> tuple[Step, ...]:
    ids = values["ids"]
    real = attention.padding_mask(ids)
    causal = attention.causal_mask(len(real))
    both = np.outer(real, real)
    return (
        _sequence(ids),
        _mask("Padding mask, queries and keys", r"M^{\text{pad}}_{ij} = m_i\, m_j", both),
        _mask("Look-ahead mask", r"M^{\text{causal}}_{ij} = 1\ \text{where } j \le i", causal),
        _with_notes(
            _mask("Their product", r"M^{\text{pad}} \odot M^{\text{causal}}", both * causal),
            "1 0 0; 1 1 0; 0 0 0",
            "Combine mask =[[1 0 0] [1 1 0] [0 0 0]]",
        ),
        _mask(
            "The product with keys masked only",
            r"m_j\, M^{\text{causal}}_{ij}",
            _keys_only(real) * causal,
            "Here the padded query keeps a row of weights; its output is simply not used.",
        ),
    )


@worked(
    "two-padding-masks",
    "§5",
    "Two ways to write one padding mask",
    "A padding mask may hide padded keys only, or padded queries too. "
    "Only the padded query's own row differs.",
    token_ids("ids", "Token ids (0 is padding)", [1, 2, 3, 0]),
)
def _two_paddings(values: Values) -> tuple[Step, ...]:
    ids = values["ids"]
    real = attention.padding_mask(ids)
    both, keys_only = np.outer(real, real), _keys_only(real)
    reason = (
        "Both ways are in use in the notes: once the last row holds zeros, and once every query has "
        "the same row. The second, which masks keys only, is what implementations do."
    )
    return (
        _sequence(ids),
        _with_notes(
            _mask("Padding mask, queries and keys", r"M_{ij} = m_i\, m_j", both, reason),
            "1 1 1 0; 1 1 1 0; 1 1 1 0; 0 0 0 0",
            "[[1 1 1 0] [1 1 1 0] [1 1 1 0] [0 0 0 0]]",
        ),
        _with_notes(
            _mask("Padding mask, keys only", r"M_{ij} = m_j", keys_only, reason),
            "1 1 1 0; 1 1 1 0; 1 1 1 0; 1 1 1 0",
            "[1*1, 1*1, 1*1, 1*0]]",
        ),
        _mask("Where the two differ", r"m_j - m_i\, m_j", keys_only - both),
        _with_notes(
            _mask(
                "Look-ahead mask times the keys-only padding mask",
                r"m_j\, M^{\text{causal}}_{ij}",
                keys_only * attention.causal_mask(len(real)),
            ),
            "1 0 0 0; 1 1 0 0; 1 1 1 0; 1 1 1 0",
            "1*1, 1*0]] [1 1 1 0]",
        ),
    )
