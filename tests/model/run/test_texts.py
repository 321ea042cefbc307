"""Any text gets numbers or a sentence: never NaN, never another kind of error."""

from contextlib import nullcontext

import numpy as np
import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from model import Model, TextTooLongError, Trace
from model.run.tokenizers import GPT2Subset, WordTokenizer, clean, gpt2, gpt2_tokens, spans, spelled
from tests.cases import cases
from tests.model.tiny import CONTEXT, build, closed_tokenizer, loaded, sentence, target

BLANK = ["", " ", "\n\t \r", "\u3000\u2003", "\x1c\x1f", "\u2028"]
HOSTILE = {
    "one letter": "a",
    "one emoji": "👩‍👩‍👧",
    "half an emoji": "\ud83d",
    "the other half": "cat \ude00 cat",
    "swapped halves": "\ude00\ud83d",
    "NUL": "a\x00b",
    "control characters": "\x01\x02\x7f\x1b[31mred",
    "invisible": "\u200b\u2060\ufeff",
    "right to left": "שלום עולם \u202eabc",
    "combining": "e\u0301\u0301\u0301\u0301 Z\u0351\u036b",
    "end of text": "a<|endoftext|>b",
    "special tokens": "[CLS] [SEP] [MASK] [PAD] <start>",
    "HTML": "<script>alert('x')</script><b>&amp;</b>",
    "Markdown": "**a** `b` [c](d) $e^{f}$ # g",
    "highest character": "\U0010ffff\ufffe",
    "no-break space": "a\u00a0b\u0085c",
    "CJK": "猫が見た",
}
any_text = st.text(st.characters(exclude_categories=()), max_size=60)
typed = st.lists(
    st.one_of(
        any_text,
        st.sampled_from(
            ["<|endoftext|>", " the cat", "\ud800", "\x00", "</script>", "é", "🦁", "  "]
        ),
    ),
    max_size=6,
).map("".join)


def assert_all_numbers(trace: Trace) -> None:
    assert trace.check() < 1e-5
    for states in trace.residual.values():
        assert all(np.isfinite(state).all() for state in states)
    assert trace.logits is None or np.isfinite(trace.logits).all()
    for token in trace.tokens:
        token.text.encode()


@cases("text", [{"the cat": "the dog"}, b"the cat", None])
def test_what_is_no_text_is_refused(text, model: Model) -> None:
    for refused in (model.tokens, model.trace):
        with pytest.raises(ValueError, match=f"as a str .* not {type(text).__name__}"):
            refused(text)
    with pytest.raises(ValueError, match="text is "):
        model.truncate(text)
    if model.config.shape == "encoder-decoder" and text:
        with pytest.raises(ValueError, match="target is "):
            model.trace(sentence(model), text)


@cases("text", BLANK)
def test_blank_text_is_answered_with_a_sentence(text, model: Model) -> None:
    for refused in (model.tokens, model.trace, model.truncate):
        with pytest.raises(ValueError, match="There is no text yet"):
            refused(text)


@cases("name", HOSTILE)
def test_hostile_text_gives_numbers_or_a_sentence(name, model: Model) -> None:
    text = HOSTILE[name]
    unknown = isinstance(model.tokenizer, WordTokenizer) and bool(model.new_words(text))
    refusal = pytest.raises(ValueError, match=r"This model does not know .*\.")
    with refusal if unknown else nullcontext() as told:
        trace = model.trace(model.truncate(text))
        assert_all_numbers(trace)
    (str(told.value) if unknown else trace.text).encode()


def test_one_token_looks_at_itself_only(model: Model) -> None:
    word = next(token.text for token in model.tokens(sentence(model)) if not token.special)
    trace = model.trace(word, target(model))
    for attention in trace.attention:
        if attention.key.shape[1] == 1:
            assert (attention.weights(0) == 1).all()
    assert sum(not token.special for token in trace.tokens) == 1
    assert_all_numbers(trace)


def test_text_beyond_the_context_is_refused_with_the_numbers(model: Model) -> None:
    text = " ".join([sentence(model)] * (model.config.n_ctx // 5))
    length, context = len(model.tokens(text)), model.config.n_ctx
    assert length > context
    for refused in (model.trace, model.generate) if model.config.decoder_layers else (model.trace,):
        with pytest.raises(TextTooLongError, match=f"{length:,} tokens.*{context:,}") as refusal:
            refused(text)
        assert (refusal.value.length, refusal.value.context) == (length, context)


def test_a_target_beyond_the_context_is_refused_too() -> None:
    with pytest.raises(TextTooLongError, match="17 tokens"):
        loaded("translator").trace("the cat", " ".join(["le chat"] * 8))
    longest = loaded("translator").trace("the cat", " ".join(["le"] * (CONTEXT - 1)))
    assert len(longest.target_tokens) == CONTEXT


def test_as_many_tokens_as_fit_are_kept(model: Model) -> None:
    text = " ".join([sentence(model)] * (model.config.n_ctx // 5))
    kept, context = model.truncate(text), model.config.n_ctx
    assert text.startswith(kept)
    trace = model.trace(kept)
    assert len(trace.tokens) == context
    added = sum(token.special for token in trace.tokens[1:])
    wanted = model.tokens(text)[: context - added]
    assert [token.id for token in trace.tokens[: len(wanted)]] == [token.id for token in wanted]


def test_a_text_that_fits_is_kept_whole(model: Model) -> None:
    text = f" {sentence(model)}  "
    assert model.truncate(text) == text


def test_a_closed_list_of_words_is_cut_between_words() -> None:
    assert loaded("gpt").truncate("the cat, " * 9) == "the cat, " * 5 + "the"
    assert loaded("gpt").truncate("L'homme voit. " * 9) == ("L'homme voit. " * 4).strip()


@settings(max_examples=100)
@given(typed)
def test_spans_of_bytes_are_those_of_the_library(text: str) -> None:
    bytes_alone = BPE({letter: id_ for id_, letter in enumerate(ByteLevel.alphabet())}, [])
    library = tokenizers.Tokenizer(bytes_alone)
    library.pre_tokenizer = ByteLevel(add_prefix_space=False)
    text = clean(text)
    raws = [bytes([byte]) for byte in text.encode()]
    assert list(spans(raws)) == library.encode(text).offsets


@settings(max_examples=100)
@given(typed)
@example("The cat’s 🦁 日本")
def test_a_token_of_whole_characters_stands_at_its_span(text: str) -> None:
    for token in (*loaded("gpt-bytes").tokenizer.tokens(text), *gpt2_tokens(text)):
        if "‹" not in spelled(token.raw):
            assert clean(text)[slice(*token.span)] == token.text


def test_words_stand_at_their_spans() -> None:
    text = "  The CAT saw L’homme,  the dog."
    places = [token.span for token in closed_tokenizer().tokens(text)]
    words = ["The", "CAT", "saw", "L’", "homme", ",", "the", "dog", "."]
    assert [text[slice(*place)] for place in places if place] == words


@settings(max_examples=60)
@given(typed.filter(lambda text: bool(text.strip())))
@example("\u00e9" * 40)
@example("cat" * 40)
@example("🦁" * 12)
def test_what_is_kept_is_a_beginning_that_fits(text: str) -> None:
    model = loaded("gpt-bytes")
    kept = model.truncate(text)
    raws = [token.raw for token in model.tokens(text)]
    beginnings = [b"".join(raws[:count]).decode(errors="ignore") for count in range(CONTEXT + 1)]
    fitting = [part for part in beginnings if len(model.tokenizer.tokens(part)) <= CONTEXT]
    assert kept == (text if len(raws) <= CONTEXT else max(fitting, key=len))
    assert clean(text).startswith(clean(kept))


@settings(max_examples=100)
@given(typed)
def test_gpt2s_tokens_decode_to_the_text_without_lone_surrogates(text: str) -> None:
    tokenizer = loaded("gpt-bytes").tokenizer
    assert isinstance(tokenizer, GPT2Subset)
    tokens = tokenizer.tokens(text)
    assert tokenizer.decode([token.id for token in tokens]) == clean(text)
    assert b"".join(token.raw for token in tokens).decode() == clean(text)
    assert all(0 <= token.id < tokenizer.size for token in tokens)


@settings(max_examples=40)
@given(typed.filter(lambda text: bool(text.strip())))
@pytest.mark.parametrize("name", ["gpt-bytes", "minilm"])
def test_no_text_gives_nan(name: str, text: str) -> None:
    model = loaded(name)
    assert_all_numbers(
        model.trace(model.truncate(text) if name == "minilm" else _beginning(model, text))
    )


def _beginning(model: Model, text: str) -> str:
    kept = model.truncate(text)
    return kept if kept.strip() else "the"


@given(any_text)
def test_cleaning_replaces_lone_surrogates_only(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    expected = "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in joined)
    assert cleaned == expected


def test_text_that_looks_like_a_special_token_is_text() -> None:
    tokens = loaded("gpt-bytes").tokens("<|endoftext|>")
    assert "".join(token.text for token in tokens) == "<|endoftext|>"
    assert len(tokens) > 1
    assert not any(token.special for token in tokens)


def test_a_token_outside_the_kept_ones_is_spelled_in_its_bytes() -> None:
    tokenizer = GPT2Subset(gpt2().encode(" the cat"))
    assert [token.text for token in tokenizer.tokens(" the cat")] == [" the", " cat"]
    assert [token.text for token in tokenizer.tokens(" dog")] == [" ", "d", "o", "g"]
    lion = tokenizer.tokens("🦁")
    assert b"".join(token.raw for token in lion) == "🦁".encode()
    assert [token.text for token in lion] == ["‹F0›", "‹9F›", "‹A6›", "‹81›"]
    assert tokenizer.new_words(" the dog and the dog's cat") == ("dog", "and", "'s")
    assert tokenizer.size == 256 + 2


def test_all_of_gpt2s_tokens_are_gpt2s_own() -> None:
    """Ids that GPT-2's published vocabulary gives."""
    assert gpt2().encode("Hello world") == [15496, 995]
    assert gpt2().encode(" unbelievable tokens") == [24479, 16326]
    assert gpt2().n_vocab == 50257


def test_words_are_split_at_spaces_and_punctuation_whatever_their_case() -> None:
    tokenizer = closed_tokenizer()
    ids = tokenizer.encode("The CAT saw L’homme, the dog.")
    assert tokenizer.decode(ids) == "the cat saw l'homme, the dog."
    assert tokenizer.new_words("the xylophone saw Zoë and the xylophone") == ("xylophone", "zoë")
    with pytest.raises(ValueError, match="does not know “xylophone”, “zoë”"):
        tokenizer.encode("the xylophone saw Zoë")
    assert [token.special for token in tokenizer.named([0, 2, 1])] == [True, False, True]


def test_minilm_marks_what_its_tokenizer_added_and_names_unknown_words() -> None:
    model = loaded("minilm")
    tokens = model.tokens("The cat 🦁 sat.")
    assert [token.text for token in tokens] == ["[CLS]", "the", "cat", "[UNK]", "sat", ".", "[SEP]"]
    assert [token.special for token in tokens] == [True, *[False] * 5, True]
    assert [token.span for token in tokens] == [
        None,
        (0, 3),
        (4, 7),
        (8, 9),
        (10, 13),
        (13, 14),
        None,
    ]
    assert model.new_words("The cat 🦁 sat 🦁.") == ("🦁",)
    assert model.tokenizer.decode([token.id for token in tokens]) == "the cat sat."


def test_a_fresh_model_gives_the_same_numbers() -> None:
    one, other = (build("gpt-bytes").trace("the cat") for _ in range(2))
    np.testing.assert_array_equal(one.logits, other.logits)
