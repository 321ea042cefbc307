"""Errata of words and code in the notes: wrong signs, letters, shapes and names."""

from __future__ import annotations

from model.worked.source import GPT, INTRODUCTION, MATRICES, PAPER, TWO_LAYERS, Source

_EINSUM_CLASS = MATRICES.at("class SelfAttention")
_BLOCK = MATRICES.at("class TransformerBlock")
_LAYER_NORM = MATRICES.at("Normalizing activations with layer normalization")
_DECODER = INTRODUCTION.at("Decoder in transformers")
_POSITIONS = INTRODUCTION.at("Positional Encoding")
_ADD_AND_NORM = INTRODUCTION.at("Layer normalization")
_CHAPTER_3 = GPT.at("Chapter 3")
_PAPER_CLASS = PAPER.at("class MultiHeadAttention")
_WALK = TWO_LAYERS.at("Forward Function Walkthrough")

# By example: where the notes say it, what they say, what the arithmetic gives, and why.
OF_WORDS: dict[str, tuple[tuple[Source, str, str, str], ...]] = {
    "variance-of-a-dot-product": (
        (
            _CHAPTER_3,
            "“d” is the embedding dimension in one formula of scaling.",
            "√d_k, the width of one head.",
            "The variance of a score grows with the number of products in it, and those are d_k.",
        ),
    ),
    "average-gradient": (
        (
            _WALK,
            "The average gradient of the softmax is often .1 to .15.",
            "Only for a few keys: about 6 to 8 with nearly equal scores, or 2 to 4 with spread ones.",
            "For n equal weights the slope is (1/n)(1 − 1/n): .25 for 2 keys, and .0154 for 64.",
        ),
    ),
    "softmax-slopes": (
        (
            _WALK,
            "The softmax gives a probability density function (pdf).",
            "A discrete distribution: separate probabilities that sum to 1.",
            "A density belongs to a continuous quantity; there is one weight for each key.",
        ),
    ),
    "projection-is-a-product": (
        (
            _DECODER,
            "Q = embedding + W_Q",
            "Q = embedding · W_Q",
            "A projection is a matrix product.",
        ),
    ),
    "padding-to-the-source": (
        (
            _DECODER,
            "The target [1, 2, 3] is padded to [1, 2, 3, 0] because the source has 4 tokens.",
            "A cross-attention table of 3 × 4 works.",
            "Queries and keys may differ in number; padding is for the sequences of one batch.",
        ),
    ),
    "two-padding-masks": (
        (
            _DECODER,
            "The 4 × 4 padding mask ends with a row of zeros in one place, "
            "and has [1, 1, 1, 0] in every row in another.",
            "[1, 1, 1, 0] in every row.",
            "Implementations mask keys only, so that no row is left without a key.",
        ),
    ),
    "ladder-without-weights": (
        (
            _CHAPTER_3,
            "z(j)",
            "z(i)",
            "The output belongs to the query i; j runs over the keys and is summed away.",
        ),
        (
            _CHAPTER_3,
            "Z = A Xᵀ",
            "Z = A X: (N × N)(N × d) gives N × d.",
            "Xᵀ has d rows, and A has N columns; the shapes fit A X only.",
        ),
        (
            _CHAPTER_3,
            "The softmax is said to give the attention scores.",
            "The softmax gives the attention weights.",
            "Scores are what goes into the softmax.",
        ),
    ),
    "ladder-with-weights": (
        (
            _CHAPTER_3,
            "W_i",
            "W_v",
            "The matrix of the values carries the index v, not that of a token.",
        ),
        (
            _CHAPTER_3,
            "W_q holds weights “for all vocabulary”.",
            "One W_q for each layer, learned, and the same for all tokens.",
            "Its shape is d_in × d_k and has no vocabulary in it.",
        ),
        (
            _CHAPTER_3,
            "W_q, W_k and W_v are N × d_k.",
            "d_in × d_k",
            "X is N × d_in, so X·W fits only a matrix with d_in rows.",
        ),
        (
            _CHAPTER_3,
            "Ω = QKᵀ has the shape N × d_k.",
            "N × N",
            "(N × d_k)(d_k × N) gives one score for each pair of tokens.",
        ),
        (
            _CHAPTER_3,
            "The score is q(i) · v(j) in one place.",
            "q(i) · k(j)",
            "Queries are compared with keys; values are only handed over.",
        ),
        (
            _CHAPTER_3,
            "Z = A Vᵀ",
            "Z = A V: (N × N)(N × d_v) gives N × d_v.",
            "Vᵀ has d_v rows, and A has N columns.",
        ),
    ),
    "four-classes-agree": (
        (
            _PAPER_CLASS,
            "K is multiplied by Qᵀ.",
            "Q Kᵀ, as the code below it does.",
            "Rows are queries; K Qᵀ would be the transposed table.",
        ),
        (
            _PAPER_CLASS,
            "Linear(d_head, d_model) in the question why not.",
            "Linear(d_model, d_head)",
            "A head's projection takes the full width in and gives d_head out.",
        ),
        (
            _BLOCK,
            "forward stands inside __init__.",
            "forward is a method beside __init__.",
            "Nested in it, forward is a local function and the module has none.",
        ),
        (
            _BLOCK,
            "Dropout stands after the norm.",
            "Dropout stands on the sub-layer's output, before the sum and the norm.",
            "After the norm it would also drop parts of the residual stream.",
        ),
        (
            _PAPER_CLASS,
            "maks==0. -1e9",
            "mask == 0, -1e9",
            "A misspelt name, and a point where a comma belongs.",
        ),
        (
            _EINSUM_CLASS,
            "A shape comment gives keys before queries.",
            "(batch, heads, queries, keys)",
            'einsum "nqhd,nkhd->nhqk" puts the query axis first.',
        ),
    ),
    "ladder-causal-dropout": (
        (
            _CHAPTER_3,
            "self.dropout is used without being created.",
            "Dropout has to be created in __init__.",
            "Using an attribute that does not exist raises an AttributeError.",
        ),
    ),
    "sinusoidal-table": (
        (
            _POSITIONS,
            "i is “the dimension”.",
            "i counts pairs of dimensions: 2i and 2i + 1 share one angle.",
            "With d_model = 4 there are two pairs, i = 0 and i = 1.",
        ),
    ),
    "layer-norm-by-hand": (
        (
            _LAYER_NORM,
            "Layer norm divides by the variance.",
            "It divides by the standard deviation, √(σ² + ε).",
            "Only that brings the variance to 1.",
        ),
        (
            _ADD_AND_NORM,
            "γ = 1 and β = 0 give the “same original”.",
            "They give x̂ = [-1.34, -0.45, 0.45, 1.34], not x = [2, 4, 6, 8].",
            "γ · x̂ + β leaves x̂ as it is; the Y printed below it is x̂.",
        ),
    ),
}
