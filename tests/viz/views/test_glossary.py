"""The glossary: one sentence a term, in the order of the alphabet, with links that lead somewhere."""

import base64
import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from model.loading.shipped import DamagedError
from model.run.tokenizers import gpt2, gpt2_ids
from model.trace.arrays import Array
from model.worked import examples
from tests.cases import cases
from viz.figures.svg import miniature
from viz.state.navigation import PAGES
from viz.views.glossary.glossary import TERMS, glossary_link, term
from viz.views.glossary.miniatures import MADE, picture
from viz.views.library.questions import questions
from viz.views.worked.by_hand import worked_example

IDS = [found.name for found in TERMS]
NEEDED = """
attention, query, key, value, score, scaled score, mask, causal mask, padding mask, combined mask,
mask value, weight, softmax, output, context vector, head, multi-head attention, concatenation, W_O,
self-attention, cross-attention, encoder, decoder, encoder–decoder, GPT, token, byte pair encoding,
word piece, special token, vocabulary, embedding, contextual embedding, positional encoding,
sinusoidal positions, learned positions, rotary positions, permutation equivariance, residual stream,
shortcut, layer norm, RMS norm, batch norm, pre-norm, post-norm, γ, β, biased variance, feed-forward,
GELU, ReLU, SwiGLU, neuron, dropout, logits, probability, temperature, top-k, top-p, greedy decoding,
logit lens, cross-entropy loss, perplexity, entropy, KL divergence, induction head,
previous-token head, attention sink, ablation, counterfactual, attention rollout, teacher forcing,
context length, stride, weight tying, FLOPs, KV cache, checkpoint, trace, explicit pass, fused kernel
"""


def test_the_glossary_has_the_term(subtests: pytest.Subtests) -> None:
    for name in [name.strip() for name in NEEDED.split(",")]:
        with subtests.test(name=name):
            found = term(name)
            assert name.casefold() in {one.casefold() for one in (found.name, *found.also)}
            assert term(name.upper()) is found


@cases("found", TERMS)
def test_each_term_is_told_in_one_sentence(found) -> None:
    assert found.meaning.endswith(".")
    assert found.meaning[0].isupper()
    assert not re.search(r"[.!?]\s", found.meaning)
    assert 4 <= len(found.meaning.split()) <= 35


@cases("found", TERMS)
def test_each_link_of_a_term_leads_somewhere(found) -> None:
    assert found.page in {page.file for page in PAGES} | {""}
    assert bool(found.page) != found.meaning.endswith("; not shown here.")
    assert found.topic in {one.topic for one in questions()}
    assert found.example is None or found.example in {example.name for example in examples()}
    assert found.page != "pages/worked_examples.py" or found.example


def test_terms_stand_in_the_order_of_the_alphabet_and_no_name_means_two_things() -> None:
    names = [found.name.casefold() for found in TERMS]
    assert names == sorted(names)
    every = [name.casefold() for found in TERMS for name in {found.name, *found.also}]
    assert len(set(every)) == len(every)


@cases("found", TERMS)
def test_each_term_has_a_picture_of_its_own_kind_of_numbers(found) -> None:
    drawn = picture(found)
    assert re.findall("<span>([^<]+)</span>", drawn) == list(found.pieces or ())
    if not found.pieces:
        _, encoded = drawn.split(";base64,")
        svg = base64.b64decode(encoded.partition('"')[0]).decode()
        assert svg.count("<path") >= 2


def test_a_small_picture_shows_the_numbers_of_its_step() -> None:
    weights = worked_example("the-cat-sat").steps[6]
    assert weights.title == "Weights"
    shares = weights.result / weights.result.max()
    drawn = base64.b64decode(miniature(weights.result, "weight").split(",")[1]).decode()
    cells = re.findall(r'M(\d) (\d)h1v1h-1z" fill="#6A51A3" opacity="([\d.]+)"', drawn)
    assert [(int(row), int(column)) for column, row, _ in cells] == list(np.ndindex(3, 3))
    assert np.allclose([float(cell[2]) for cell in cells], shares.ravel(), atol=0.005)


@cases(
    "name, expected",
    [
        ("Induction head", lambda row: row - 4 if row > 6 else None),
        ("Previous-token head", lambda row: row - 1 if row else None),
        ("Attention sink", lambda row: 0 if row in (1, 2, 6, 8) else None),
    ],
)
def test_a_kind_of_head_is_shown_by_a_head_that_does_it(name, expected) -> None:
    values, quantity = MADE[name]
    weights = values()
    assert quantity == "weight"
    assert np.allclose(weights.sum(axis=1), 1)
    rows = [row for row in range(len(weights)) if expected(row) is not None]
    assert len(rows) >= 3
    assert [int(weights[row].argmax()) for row in rows] == [expected(row) for row in rows]


def test_a_term_whose_model_cannot_be_read_stays_without_a_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def damaged() -> Array:
        raise DamagedError("The file is damaged.")

    picture.cache_clear()
    monkeypatch.setitem(MADE, "Induction head", (damaged, "weight"))
    assert picture(term("induction head")) == ""
    picture.cache_clear()


def test_the_pieces_of_a_word_are_those_that_a_tokenizer_cuts_it_into() -> None:
    text, _, *ids = term("tokenizer").pieces
    assert list(gpt2_ids(text.replace("·", " "))) == [int(id_) for id_ in ids]
    pieces = term("byte pair encoding").pieces
    assert tuple(gpt2().decode([id_]) for id_ in gpt2_ids("".join(pieces))) == pieces


@cases("found", TERMS)
def test_a_link_to_a_term_opens_that_term(found) -> None:
    words, address = re.fullmatch(r"\[(.*)\]\((.*)\)", glossary_link(found.name)).groups()
    parts = urlsplit(address)
    assert parts.path == "/library"
    assert term(*parse_qs(parts.query)["term"]) is found
    assert words.replace("\\", "") == found.name
    assert not set(address) & set(" ()")


def test_a_link_may_say_other_words_and_never_marks() -> None:
    assert glossary_link("weight", "a *b*").startswith(r"[a \*b\*](")


def test_an_unknown_term_is_refused_by_name() -> None:
    with pytest.raises(KeyError, match="no term “flux”"):
        term("flux")
    with pytest.raises(KeyError):
        glossary_link("flux")
