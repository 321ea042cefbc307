"""Masks by themselves: padding, look-ahead, and their product."""

import numpy as np

from model.arithmetic import attention
from model.worked.example import Array, Sheet, token_ids, whole, worked

_SEQUENCES = ("first sequence", "second sequence")


def _mask(sheet: Sheet, title: str, formula: str, allowed: Array) -> None:
    sheet.step(title, formula, allowed, "query", "key", blocked=allowed == 0)
    last = len(allowed) - 1
    sheet.numbers(r"M_{\text{query @}} = @", last, allowed[last])


def _sequence(sheet: Sheet, ids: Array) -> None:
    sheet.step("Token ids", "t_j", ids, "token", blocked=ids == 0)
    sheet.numbers("@", ids)


def _keys_only(real: Array) -> Array:
    return np.tile(real, (len(real), 1))


@worked(
    "§5",
    "The padding mask",
    "Short sequences are filled up with the padding token 0. The mask says which tokens are real.",
    token_ids("ids", "Token ids (0 is padding)", [[1, 2, 3], [4, 5, 0]], _SEQUENCES, "token"),
)
def padding_mask(sheet: Sheet, ids: Array) -> None:
    sheet.step("Token ids", "t_j", ids, _SEQUENCES, "token", blocked=ids == 0)
    sheet.numbers(r"@,\ @", *ids)
    real, formula = attention.padding_mask(ids), r"m_j = 1\ \text{where token } j \ne 0"
    title = "Padding mask of each sequence"
    sheet.step(title, formula, real, _SEQUENCES, "token", blocked=real == 0)
    sheet.numbers(r"@ \to @", ids[1], real[1])
    both = np.outer(real[1], real[1])
    _mask(sheet, "Second sequence, queries and keys masked", r"M_{ij} = m_i\, m_j", both)
    _mask(sheet, "Second sequence, keys masked only", r"M_{ij} = m_j", _keys_only(real[1]))
    sheet.remark("Implementations do this, so that no row is left without any key.")


@worked(
    "§5",
    "The look-ahead mask",
    "Each query may attend to itself and to earlier tokens, never to later ones.",
    whole("length", "Length", 3, 1, 12),
)
def look_ahead_mask(sheet: Sheet, length: int) -> None:
    allowed = attention.causal_mask(length)
    _mask(sheet, "Look-ahead mask", r"M_{ij} = 1\ \text{where } j \le i", allowed)
    sheet.remark(
        "When the model generates, the future does not exist yet. "
        "In training the mask lets every position predict its next token in parallel."
    )
    closed, formula = 1.0 - allowed, r"1 - M_{ij} = 1\ \text{where } j > i"
    sheet.step("The cells to be hidden", formula, closed, "query", "key")
    sheet.numbers(r"\text{query 0: } @", closed[0])
    sheet.remark("Ones strictly above the diagonal: the other way to write the same mask.")
    counts, formula = allowed.sum(axis=1), r"\sum_j M_{ij} = i + 1"
    sheet.step("Keys that each query may attend to", formula, counts, "query")
    sheet.numbers(r"\text{query @: } @", length - 1, counts[-1])


@worked(
    "§5",
    "Padding and look-ahead together",
    "A cell is allowed where both masks allow it: multiply them cell by cell.",
    token_ids("ids", "Token ids (0 is padding)", [4, 5, 0]),
)
def combined_mask(sheet: Sheet, ids: Array) -> None:
    real = attention.padding_mask(ids)
    causal, both = attention.causal_mask(len(ids)), np.outer(real, real)
    _sequence(sheet, ids)
    _mask(sheet, "Padding mask, queries and keys", r"M^{\text{pad}}_{ij} = m_i\, m_j", both)
    formula = r"M^{\text{causal}}_{ij} = 1\ \text{where } j \le i"
    _mask(sheet, "Look-ahead mask", formula, causal)
    _mask(sheet, "Their product", r"M^{\text{pad}} \odot M^{\text{causal}}", both * causal)
    formula = r"m_j\, M^{\text{causal}}_{ij}"
    _mask(sheet, "The product with keys masked only", formula, _keys_only(real) * causal)
    sheet.remark("Here the padded query keeps a row of weights, but its output is not used.")


@worked(
    "§5",
    "Two ways to write one padding mask",
    "A padding mask may hide padded keys only, or padded queries too. "
    "Only the padded query's own row differs.",
    token_ids("ids", "Token ids (0 is padding)", [1, 2, 3, 0]),
)
def two_padding_masks(sheet: Sheet, ids: Array) -> None:
    real = attention.padding_mask(ids)
    both, keys_only = np.outer(real, real), _keys_only(real)
    reason = (
        "The notes use both: in one place the last row holds zeros, in another every query has the "
        "same row. Implementations use the second, which masks keys only."
    )
    _sequence(sheet, ids)
    _mask(sheet, "Padding mask, queries and keys", r"M_{ij} = m_i\, m_j", both)
    sheet.remark(reason)
    _mask(sheet, "Padding mask, keys only", r"M_{ij} = m_j", keys_only)
    sheet.remark(reason)
    _mask(sheet, "Where the two differ", r"m_j - m_i\, m_j", keys_only - both)
    title = "Look-ahead mask times the keys-only padding mask"
    product = keys_only * attention.causal_mask(len(ids))
    _mask(sheet, title, r"m_j\, M^{\text{causal}}_{ij}", product)
