"""Slips of words and code in the notes: wrong signs, letters, shapes and names."""

from __future__ import annotations

from model.worked.slip import Slip
from model.worked.source import GPT, INTRODUCTION, MATRICES, PAPER, TWO_LAYERS

_EINSUM_CLASS = MATRICES.at("class SelfAttention")
_BLOCK = MATRICES.at("class TransformerBlock")
_LAYER_NORM = MATRICES.at("Normalizing activations with layer normalization")
_DECODER = INTRODUCTION.at("Decoder in transformers")
_POSITIONS = INTRODUCTION.at("Positional Encoding")
_ADD_AND_NORM = INTRODUCTION.at("Layer normalization")
_CHAPTER_3 = GPT.at("Chapter 3")
_PAPER_CLASS = PAPER.at("class MultiHeadAttention")
_WALK = TWO_LAYERS.at("Forward Function Walkthrough")

OF_WORDS = (
    Slip(
        "§2",
        _CHAPTER_3,
        "“d” is the embedding dimension in one formula of scaling.",
        "√d_k, the width of one head.",
        "The variance of a score grows with the number of products in it, and those are d_k.",
        "variance-of-a-dot-product",
    ),
    Slip(
        "§2",
        _WALK,
        "The average gradient of the softmax is often .1 to .15.",
        "Only for a few keys: about 6 to 8 with nearly equal scores, or 2 to 4 with spread ones.",
        "For n equal weights the slope is (1/n)(1 − 1/n): .25 for 2 keys, and .0154 for 64.",
        "average-gradient",
    ),
    Slip(
        "§2",
        _WALK,
        "The softmax gives a probability density function (pdf).",
        "A discrete distribution: separate probabilities that sum to 1.",
        "A density belongs to a continuous quantity; there is one weight for each key.",
        "softmax-slopes",
    ),
    Slip(
        "§5",
        _DECODER,
        "Q = embedding + W_Q",
        "Q = embedding · W_Q",
        "A projection is a matrix product.",
        "projection-is-a-product",
    ),
    Slip(
        "§5",
        _DECODER,
        "The target [1, 2, 3] is padded to [1, 2, 3, 0] because the source has 4 tokens.",
        "A cross-attention table of 3 × 4 works.",
        "Queries and keys may differ in number; padding is for the sequences of one batch.",
        "padding-to-the-source",
    ),
    Slip(
        "§5",
        _DECODER,
        "The 4 × 4 padding mask ends with a row of zeros in one place, "
        "and has [1, 1, 1, 0] in every row in another.",
        "[1, 1, 1, 0] in every row.",
        "Implementations mask keys only, so that no row is left without a key.",
        "two-padding-masks",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "z(j)",
        "z(i)",
        "The output belongs to the query i; j runs over the keys and is summed away.",
        "ladder-without-weights",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "Z = A Xᵀ",
        "Z = A X: (N × N)(N × d) gives N × d.",
        "Xᵀ has d rows, and A has N columns; the shapes fit A X only.",
        "ladder-without-weights",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "The softmax is said to give the attention scores.",
        "The softmax gives the attention weights.",
        "Scores are what goes into the softmax.",
        "ladder-without-weights",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "W_i",
        "W_v",
        "The matrix of the values carries the index v, not that of a token.",
        "ladder-with-weights",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "W_q holds weights “for all vocabulary”.",
        "One W_q for each layer, learned, and the same for all tokens.",
        "Its shape is d_in × d_k and has no vocabulary in it.",
        "ladder-with-weights",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "W_q, W_k and W_v are N × d_k.",
        "d_in × d_k",
        "X is N × d_in, so X·W fits only a matrix with d_in rows.",
        "ladder-with-weights",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "Ω = QKᵀ has the shape N × d_k.",
        "N × N",
        "(N × d_k)(d_k × N) gives one score for each pair of tokens.",
        "ladder-with-weights",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "The score is q(i) · v(j) in one place.",
        "q(i) · k(j)",
        "Queries are compared with keys; values are only handed over.",
        "ladder-with-weights",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "Z = A Vᵀ",
        "Z = A V: (N × N)(N × d_v) gives N × d_v.",
        "Vᵀ has d_v rows, and A has N columns.",
        "ladder-with-weights",
    ),
    Slip(
        "§6",
        _PAPER_CLASS,
        "K is multiplied by Qᵀ.",
        "Q Kᵀ, as the code below it does.",
        "Rows are queries; K Qᵀ would be the transposed table.",
        "four-classes-agree",
    ),
    Slip(
        "§6",
        _PAPER_CLASS,
        "Linear(d_head, d_model) in the question why not.",
        "Linear(d_model, d_head)",
        "A head's projection takes the full width in and gives d_head out.",
        "four-classes-agree",
    ),
    Slip(
        "§6",
        _BLOCK,
        "forward stands inside __init__.",
        "forward is a method beside __init__.",
        "Nested in it, forward is a local function and the module has none.",
        "four-classes-agree",
    ),
    Slip(
        "§6",
        _CHAPTER_3,
        "self.dropout is used without being created.",
        "Dropout has to be created in __init__.",
        "Using an attribute that does not exist raises an AttributeError.",
        "ladder-causal-dropout",
    ),
    Slip(
        "§6",
        _BLOCK,
        "Dropout stands after the norm.",
        "Dropout stands on the sub-layer's output, before the sum and the norm.",
        "After the norm it would also drop parts of the residual stream.",
        "four-classes-agree",
    ),
    Slip(
        "§6",
        _PAPER_CLASS,
        "maks==0. -1e9",
        "mask == 0, -1e9",
        "A misspelt name, and a point where a comma belongs.",
        "four-classes-agree",
    ),
    Slip(
        "§6",
        _EINSUM_CLASS,
        "A shape comment gives keys before queries.",
        "(batch, heads, queries, keys)",
        'einsum "nqhd,nkhd->nhqk" puts the query axis first.',
        "four-classes-agree",
    ),
    Slip(
        "§8",
        _POSITIONS,
        "i is “the dimension”.",
        "i counts pairs of dimensions: 2i and 2i + 1 share one angle.",
        "With d_model = 4 there are two pairs, i = 0 and i = 1.",
        "sinusoidal-table",
    ),
    Slip(
        "§9",
        _LAYER_NORM,
        "Layer norm divides by the variance.",
        "It divides by the standard deviation, √(σ² + ε).",
        "Only that brings the variance to 1.",
        "layer-norm-by-hand",
    ),
    Slip(
        "§9",
        _ADD_AND_NORM,
        "γ = 1 and β = 0 give the “same original”.",
        "They give x̂ = [-1.34, -0.45, 0.45, 1.34], not x = [2, 4, 6, 8].",
        "γ · x̂ + β leaves x̂ as it is; the Y printed below it is x̂.",
        "layer-norm-by-hand",
    ),
)
