"""Multilingual translators: each text gets the code of its own language, as in Hugging Face's library."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    M2M100Tokenizer,
    MBart50Tokenizer,
    MBartTokenizer,
    NllbTokenizer,
)

from model import Model, load_model
from tests.cases import cases
from tests.folders import new_folder
from tests.model.hub_families import FAMILIES
from tests.model.hub_models import build, train_pieces

TEXT, TARGET = "the cat saw the dog", "le chat"
LETTERS = "▁abcdefghijklmnopqrstuvwxyz"
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
LANGUAGES = {
    "nllb": ("eng_Latn", "fra_Latn", "deu_Latn"),
    "nllb, legacy": ("eng_Latn", "fra_Latn", "deu_Latn"),
    "m2m_100": ("en", "fr", "de"),
    "mbart": ("en_XX", "fr_XX", "de_DE"),
    "mbart-50": ("en_XX", "fr_XX", "de_DE"),
}


def tokenizer_of(kind: str, folder: Path) -> Any:
    source, target, _ = LANGUAGES[kind]
    chosen = {"src_lang": source, "tgt_lang": target}
    if kind.startswith("nllb"):
        vocabulary = {piece: id_ for id_, piece in enumerate((*SPECIAL, *LETTERS))}
        return NllbTokenizer(
            vocab=vocabulary, merges=[], legacy_behaviour=kind.endswith("legacy"), **chosen
        )
    if kind == "m2m_100":
        file = train_pieces(folder / "pieces", [TEXT, TARGET] * 9)
        pieces = sentencepiece.SentencePieceProcessor(str(file))
        known = [pieces.id_to_piece(id_) for id_ in range(3, pieces.vocab_size())]
        vocabulary = {piece: id_ for id_, piece in enumerate((*SPECIAL, *known))}
        (folder / "vocab.json").write_text(json.dumps(vocabulary))
        return M2M100Tokenizer(str(folder / "vocab.json"), str(file), num_madeup_words=0, **chosen)
    scored = [(piece, -float(number)) for number, piece in enumerate((*SPECIAL, *LETTERS))]
    made = MBart50Tokenizer if kind == "mbart-50" else MBartTokenizer
    return made(vocab=scored, **chosen)


@cache
def saved(kind: str) -> Path:
    folder = new_folder(kind)
    tokenizer = tokenizer_of(kind, folder)
    tokenizer.save_pretrained(folder)
    of_mbart = kind.startswith("mbart")
    choices = {
        **FAMILIES["bart"][2],
        "vocab_size": 256,  # of the letters and all languages
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
    }
    name = "MBart" if of_mbart else "M2M100"
    build(f"{name}ForConditionalGeneration", f"{name}Config", choices).save_pretrained(folder)
    return folder


@cache
def loaded(kind: str) -> Model:
    return load_model(str(saved(kind)), device="cpu")


def fed_by_the_library(kind: str, source: str, target: str) -> tuple[list[int], list[int]]:
    """The ids that the library's encoder and decoder read where a target is learned; without the end."""
    tokenizer = AutoTokenizer.from_pretrained(saved(kind), src_lang=source, tgt_lang=target)
    stock = AutoModelForSeq2SeqLM.from_pretrained(saved(kind)).eval()
    read: dict[str, list[int]] = {}
    for name, part in (("encoder", stock.get_encoder()), ("decoder", stock.get_decoder())):
        part.register_forward_pre_hook(
            lambda module, fed, named, name=name: read.update(
                {name: named["input_ids"][0].tolist()}
            ),
            with_kwargs=True,
        )
    both = tokenizer(TEXT, text_target=TARGET, return_tensors="pt")
    with torch.inference_mode():
        stock(**both)
    start, *rest = read["decoder"]
    return read["encoder"], [start, *(id_ for id_ in rest if id_ != 2)]


@cases("kind", LANGUAGES)
def test_a_target_gets_the_code_of_its_own_language(kind) -> None:
    trace = loaded(kind).trace(TEXT, TARGET)
    read = [token.id for token in trace.tokens], [token.id for token in trace.target_tokens]
    assert read == fed_by_the_library(kind, *LANGUAGES[kind][:2])


@cases("kind", LANGUAGES)
def test_chosen_languages_are_read_and_written_as_in_the_library(kind) -> None:
    _, source, target = LANGUAGES[kind]
    model = loaded(kind).translating(source, target)
    trace = model.trace(TEXT, TARGET)
    read = [token.id for token in trace.tokens], [token.id for token in trace.target_tokens]
    assert read == fed_by_the_library(kind, source, target)
    tokenizer = AutoTokenizer.from_pretrained(saved(kind), src_lang=source)
    stock = AutoModelForSeq2SeqLM.from_pretrained(saved(kind)).eval()
    code = model.languages[target]
    forced = {"decoder_start_token_id" if kind == "mbart" else "forced_bos_token_id": code}
    made = stock.generate(
        **tokenizer(TEXT, return_tensors="pt"), max_new_tokens=6, num_beams=1, **forced
    )[0]
    assert [token.id for token in model.generate(TEXT, limit=6)] == made[1:].tolist()
    assert code in made[:2]


def test_a_language_that_a_model_does_not_know_is_refused_by_its_code() -> None:
    assert set(LANGUAGES["nllb"]) <= loaded("nllb").languages.keys()
    with pytest.raises(ValueError, match="knows no language 'xx'"):
        loaded("nllb").translating("eng_Latn", "xx")


@cases("kind", ["nllb", "mbart"])
def test_without_a_language_of_its_own_a_target_has_the_one_that_the_model_writes(
    kind, tmp_path: Path
) -> None:
    folder = shutil.copytree(saved(kind), tmp_path / "model")
    source, _, target = LANGUAGES[kind]
    for file, change in (
        ("tokenizer_config.json", {"tgt_lang": None}),
        ("generation_config.json", {"forced_bos_token_id": loaded(kind).languages[target]}),
    ):
        settings = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(settings | change))
    trace = load_model(str(folder), device="cpu").trace(TEXT, TARGET)
    ids = [token.id for token in trace.target_tokens]
    assert ids == fed_by_the_library(kind, source, target)[1]
