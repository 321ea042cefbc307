"""A circuit of two layers by hand: a previous-token head, and an induction head that reads what it wrote.

A vector has one part for the word, one for the position, and one for the word before, which is empty until
layer 0 fills it. Each head is two matrices (Elhage et al. 2021, "A Mathematical Framework for Transformer
Circuits"): W_QK, with 1/√d_k in it, says where it looks, W_OV what it writes.
"""

import numpy as np

from model.arithmetic import attention
from model.arithmetic.composition import composition, random_composition
from model.worked import latex
from model.worked.example import Array, Input, Sheet, given, numbered, whole, worked
from model.worked.sheet import Quantity

_WORDS = ("start", "Tom", "Hill", "met")
_WORD, _PLACE, _BEFORE = slice(0, 4), slice(4, 8), slice(8, 12)
_DIMS = (*_WORDS, *numbered("pos", 4), *(f"({word})" for word in _WORDS))
_WIDTH = len(_DIMS)
_Head = tuple[Array, Array]  # W_QK and W_OV


def _strength(name: str, label: str, value: float) -> Input:
    return given(name, f"{label} (chosen here)", value, lowest=0.1)


@worked(
    "§7",
    "An induction circuit of two layers",
    "The head of layer 0 writes beside each word the word before it. The head of layer 1 looks for its own "
    "word there, and so finds what came next the last time.",
    whole("ids", f"Token ids (0 to 3: {', '.join(_WORDS)})", [0, 1, 2, 1], 0, 3, "token"),
    _strength("look", "Strength of attention to the token before", 6),
    _strength("match", "Strength of the match", 6),
    _strength("copy", "Strength of the copy", 5),
)
def induction_circuit(sheet: Sheet, ids: Array, look: float, match: float, copy: float) -> None:
    words = [_WORDS[int(one)] for one in ids]
    tokens = tuple(f"{at} {word}" for at, word in enumerate(words))
    x = np.concatenate([np.eye(4)[ids.astype(int)], np.eye(4), np.zeros((4, 4))], axis=1)
    formula = r"x = [\,\text{word},\ \text{position},\ \text{word before}\,]"
    _rows(sheet, "Vectors", formula, x, tokens)
    sheet.remark(
        "One-hot, so that each number can be read. In brackets: the word before, still empty."
    )
    first = (
        _matrix(sheet, 0, "QK", _PLACE, _PLACE, look * np.eye(4, k=-1)),
        _matrix(sheet, 0, "OV", _WORD, _BEFORE, np.eye(4)),
    )
    written = _previous_token_head(sheet, x, tokens, first)
    second = (
        _matrix(sheet, 1, "QK", _WORD, _BEFORE, match * np.eye(4)),
        _matrix(sheet, 1, "OV", _WORD, _WORD, copy * np.eye(4)),
    )
    _compose(sheet, first, second)
    _induction_head(sheet, (x, written), tokens, second)
    _predict(sheet, (x, written), words[-1], second)


def _rows(sheet: Sheet, title: str, formula: str, rows: Array, tokens: tuple[str, ...]) -> None:
    sheet.step(title, formula, rows, tokens, _DIMS, quantity="output")
    sheet.numbers(r"\text{@: } @", tokens[-1], rows[-1])


def _matrix(
    sheet: Sheet, layer: int, letters: str, reads: slice, meets: slice, block: Array
) -> Array:
    """One matrix of a head: zeros but for one block."""
    result = np.zeros((_WIDTH, _WIDTH))
    result[reads, meets] = block
    factors = r"W_Q W_K^\top / \sqrt{d_k}" if letters == "QK" else "W_V W_O"
    formula = rf"W_{{\text{{{letters}}}}}^{{({layer})}} = {factors}"
    quantity: Quantity = "score" if letters == "QK" else "value"
    sheet.step(f"Layer {layer}: W_{letters}", formula, result, _DIMS, _DIMS, quantity=quantity)
    row, column = (int(one) for one in np.argwhere(result)[0])
    sheet.numbers(r"\text{(@, @): } @", _DIMS[row], _DIMS[column], result[row, column])
    return result


def _previous_token_head(sheet: Sheet, x: Array, tokens: tuple[str, ...], head: _Head) -> Array:
    look, write = head
    title, formula = "Layer 0: scores", r"S = x\, W_{\text{QK}}\, x^\top"
    scores = sheet.scores(x @ look, x, tokens, cell=(-1, 2), title=title, formula=formula)
    weights = _causal(sheet, 0, scores, tokens)
    written = weights @ x @ write
    _rows(sheet, "What layer 0 writes", r"h = A\, x\, W_{\text{OV}}", written, tokens)
    sheet.remark("The last columns now say which word stood before each token.")
    return written


def _causal(sheet: Sheet, layer: int, scores: Array, tokens: tuple[str, ...]) -> Array:
    allowed = attention.causal_mask(len(scores))
    hidden, title = attention.masked(scores, allowed), f"Layer {layer}: weights"
    return sheet.weights(hidden, tokens, row=len(scores) - 1, allowed=allowed, title=title)


def _compose(sheet: Sheet, first: _Head, second: _Head) -> None:
    match, copy = second
    through = (match @ first[1].T)[_WORD, _WORD]
    formula = r"W_{\text{QK}}^{(1)}\, (W_{\text{OV}}^{(0)})^\top"
    sheet.step(
        "Word by word, through both heads", formula, through, _WORDS, _WORDS, quantity="score"
    )
    sheet.numbers(r"\text{(@, @): } @", _WORDS[1], _WORDS[1], through[1, 1])
    sheet.remark(
        "How much a word (row) scores a token whose predecessor is a word (column): itself alone."
    )
    ratios = [composition(first[1], one) for one in (match, match.T, copy)]
    formula = r"\frac{\|W_{\text{OV}}^{(0)}\, W\|_F}{\|W_{\text{OV}}^{(0)}\|_F\, \|W\|_F}"
    names = ("Q: W = W_QK", "K: W = its transpose", "V: W = W_OV")
    sheet.step("Composition of the two heads", formula, ratios, names)
    sheet.numbers(r"\text{Q, K, V: } @", np.array(ratios))
    sheet.remark(
        "The later head reads the earlier one in its keys alone: K-composition. Random matrices of this "
        f"width would give about 1/√{_WIDTH} = {random_composition(_WIDTH):.2f} for each."
    )


def _induction_head(
    sheet: Sheet, parts: tuple[Array, Array], tokens: tuple[str, ...], head: _Head
) -> None:
    x, written = parts
    queries = (x + written) @ head[0]
    for letter, name, part in (("x", "the embeddings", x), ("h", "layer 0", written)):
        formula = rf"(x + h)\, W_{{\text{{QK}}}}\, {letter}^\top"
        title = f"Layer 1: scores, keys made of {name}"
        sheet.scores(queries, part, tokens, cell=(-1, 2), title=title, formula=formula)
    sheet.remark("The score is the sum of both; here all of it comes through layer 0.")
    _causal(sheet, 1, queries @ (x + written).T, tokens)


def _predict(sheet: Sheet, parts: tuple[Array, Array], word: str, head: _Head) -> None:
    x, written = parts
    logits = _logits(x + written, head)
    formula = r"\ell = (x' + A\, x'\, W_{\text{OV}})_{\text{last},\ \text{word}}"
    sheet.step("Logits", formula, logits, _WORDS, quantity="score")
    sheet.numbers(r"\ell = @", logits)
    shares = np.stack([attention.softmax(logits), attention.softmax(_logits(x, head))])
    title, formula = "Probabilities with and without layer 0", r"p = \mathrm{softmax}(\ell)"
    rows = ("both heads", "layer 1 alone")
    sheet.step(title, formula, shares, rows, _WORDS, quantity="weight")
    sheet.numbers(latex.softmax(logits, shares[0]))
    best = [_WORDS[int(one)] for one in shares.argmax(1)]
    sheet.remark(
        f"After “{word}” the circuit predicts “{best[0]}”; without the head of layer 0, “{best[1]}”."
    )


def _logits(stream: Array, head: _Head) -> Array:
    """(word,): the last token's logits after the induction head."""
    look, write = head
    allowed = attention.causal_mask(len(stream))
    run = attention.attend(stream @ look, stream, stream @ write, allowed=allowed, scale=1.0)
    result: Array = (stream + run.output)[-1, _WORD]
    return result
