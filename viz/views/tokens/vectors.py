"""A token's vector: looked up in the table, and the tokens whose vectors are nearest."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from model.analysis.tokens.embeddings import cosines, neighbours, one_hot_product
from model.run.token_bytes import pieces
from model.trace.arrays import Array
from viz.figures.bars import neighbours_bars
from viz.figures.vectors import look_up, rows_around
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import difference, signed
from viz.shell.pictures import beside_words, chart, table
from viz.shell.token_select import pick_token
from viz.state.look import Look

LOOK_UP = r"h_{\mathrm{id}}\, E = E_{\mathrm{id}}"
ONE_HOT = r"h_{\mathrm{id}} = (0, \ldots, 0, \underset{\mathrm{id}}{1}, 0, \ldots, 0)"
COSINE = r"\cos(u, v) = \frac{u \cdot v}{\lVert u \rVert \, \lVert v \rVert}"
LISTED = 12


def vector_look_up(seen: Look) -> None:
    """One-hot times table, computed as a product over the whole vocabulary."""
    picture, formula = beside_words(
        "Every row is multiplied by 0, except the framed one, which is multiplied by 1. So the sum "
        "of all rows, at the bottom, is that row: the matrix product only copies."
    )
    with formula:
        place = pick_token(seen.trace.tokens, "tokens-look-up")
        id_, matrix = seen.trace.tokens[place].id, seen.model.embedding
        st.latex(ONE_HOT)
        st.latex(look_up_of(id_, *matrix.shape))
    product = one_hot_product(matrix, id_)
    with picture:
        texts = _texts(seen, rows_around(id_, len(matrix)))
        chart(look_up(matrix, texts, id_=id_, product=product), "tokens-look-up-picture")
        st.caption(_look_up_check(seen, place, product))
    columns = {"one-hot × matrix": product, f"row {id_}": matrix[id_]}
    table(columns, "tokens-look-up", index="dimension")


def nearest(seen: Look) -> None:
    """The tokens of the vocabulary nearest to one of the sentence."""
    picture, formula = beside_words(
        "Tokens that are used in similar ways have vectors that point in similar directions. The "
        "model learned this from text alone."
    )
    with formula:
        place = pick_token(seen.trace.tokens, "tokens-nearest")
        st.latex(COSINE)
    id_, matrix = seen.trace.tokens[place].id, seen.model.embedding
    found = neighbours(matrix, id_, LISTED)
    texts = _texts(seen, [neighbour.id for neighbour in found])
    alike = [neighbour.cosine for neighbour in found]
    with picture:
        chart(neighbours_bars(texts, alike), "tokens-bars")
    usual = signed(f"{cosines(matrix, matrix[id_]).mean():.4f}")
    formula.caption(
        f"Searched among all {len(matrix):,} tokens of the vocabulary. A cosine of 1 means the "
        f"same direction; the mean over the whole vocabulary is {usual}. The embedding table "
        f"does not depend on the sentence: {plain(token_label(seen.trace.tokens[place].text))} has "
        "this one vector everywhere."
    )
    columns = {
        "token": list(map(token_label, texts)),
        "id": [str(neighbour.id) for neighbour in found],
        "cosine": alike,
    }
    table(columns, "tokens-nearest")


def look_up_of(id_: int, vocabulary: int, width: int) -> str:
    return (
        rf"\underset{{1 \times {vocabulary}}}{{h_{{{id_}}}}}\;"
        rf"\underset{{{vocabulary} \times {width}}}{{E}} ="
        rf" \underset{{1 \times {width}}}{{E_{{{id_}}}}}"
    )


def _texts(seen: Look, ids: Sequence[int]) -> list[str]:
    return [piece.spelled for piece in pieces(seen.model.tokenizer.named(list(ids)))]


def _look_up_check(seen: Look, place: int, product: Array) -> str:
    """How far the product lies from the row, and from what this pass really used."""
    row = seen.model.embedding[seen.trace.tokens[place].id]
    factor = np.float32(seen.model.config.d_model**0.5 if seen.model.config.scaled_embedding else 1)
    used = seen.trace.embeddings[place]
    times = f", times √{seen.model.config.d_model}," if factor != 1 else ""
    return (
        f"Check: the product over all {len(seen.model.embedding):,} rows differs from the row by "
        f"at most {difference(float(np.abs(product - row).max()))}, and{times} from the vector "
        f"that the model used in this pass by {difference(float(np.abs(product * factor - used).max()))}."
    )
