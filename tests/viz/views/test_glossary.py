"""The glossary: one sentence a term, in the order of the alphabet, with links that lead somewhere."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from model.worked import examples
from viz.state.menu import PAGES
from viz.views.glossary.glossary import TERMS, Term, glossary_link, matching, sections, term

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


@pytest.mark.parametrize("name", [name.strip() for name in NEEDED.split(",")])
def test_the_glossary_has_the_term(name: str) -> None:
    found = term(name)
    assert name.casefold() in {one.casefold() for one in (found.name, *found.also)}
    assert term(name.upper()) is found


@pytest.mark.parametrize("found", TERMS, ids=IDS)
def test_each_term_is_told_in_one_sentence(found: Term) -> None:
    assert found.meaning.endswith(".")
    assert found.meaning[0].isupper()
    assert not re.search(r"[.!?]\s", found.meaning)
    assert 4 <= len(found.meaning.split()) <= 35


@pytest.mark.parametrize("found", TERMS, ids=IDS)
def test_each_link_of_a_term_leads_somewhere(found: Term) -> None:
    assert found.page in {page.file for page in PAGES}
    assert found.example is None or found.example in {example.name for example in examples()}
    assert found.page != "pages/worked_examples.py" or found.example


def test_terms_stand_in_the_order_of_the_alphabet_and_no_name_means_two_things() -> None:
    names = [found.name.casefold() for found in TERMS]
    assert names == sorted(names)
    every = [name.casefold() for found in TERMS for name in {found.name, *found.also}]
    assert len(set(every)) == len(every)


def test_the_parts_of_the_alphabet_hold_each_term_once_in_order() -> None:
    parts = sections()
    assert tuple(found for part in parts.values() for found in part) == TERMS
    assert len(parts) > 3
    assert next(iter(parts)) == "A–C"


@pytest.mark.parametrize("found", TERMS, ids=IDS)
def test_a_link_to_a_term_opens_that_term(found: Term) -> None:
    words, address = re.fullmatch(r"\[(.*)\]\((.*)\)", glossary_link(found.name)).groups()
    parts = urlsplit(address)
    assert parts.path == "/glossary"
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


def test_searching_finds_names_first_then_meanings_and_nothing_for_nonsense() -> None:
    found = [entry.name for entry in matching("mask")]
    assert found[:4] == ["Causal mask", "Combined mask", "Mask", "Mask value"]
    assert "Mask value" in found
    assert matching("  SOFT max ") == matching("soft max")
    assert matching("") == TERMS
    assert matching("qqqq") == ()
