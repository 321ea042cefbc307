"""translate-en-fr: a small encoder–decoder of 2017, on a grammar whose word alignment is known."""

import zlib

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from model.nn.config import TransformerConfig
from model.nn.places import Place
from model.nn.recorder import Recorder, recording
from model.nn.transformer import Transformer
from model.run.tokenizers import WordTokenizer
from model.training import grammar
from model.training.grammar import ADJECTIVES, NOUNS, VERBS, Phrase
from model.training.induction import best
from model.training.recipe import IGNORED, Batch, Evaluation, Gate, Random, Recipe

_SPECIAL = ("<start>", "<end>")
_START, _END = 0, 1  # their ids
_CONTEXT = 32
_SENTENCES = 64  # a batch
_EXAM_SENTENCES = 300
_FUNCTION_WORDS = ". an and et do does not ne n' pas de d' cet is are est sont very très"


def words() -> tuple[str, ...]:
    """Every word of both languages, sorted."""
    found = set(_FUNCTION_WORDS.split())
    found |= {
        form for english, forms in grammar.DETERMINERS.items() for form in (english, *forms) if form
    }
    found |= {
        form for english, (french, _) in grammar.PRONOUNS.items() for form in (english, french)
    }
    found |= {form for pair in grammar.PREPOSITIONS.items() for form in pair}
    for entry in (*NOUNS, *ADJECTIVES, *VERBS):
        found |= {form for form in vars(entry).values() if isinstance(form, str)}
    return tuple(sorted(found))


def is_held_out_pair(adjective: str, noun: str) -> bool:
    """One adjective–noun pair in ten is in no sentence for training."""
    return zlib.crc32(f"{adjective} {noun}".encode()) % 10 == 0


def is_held_out_sentence(phrase: Phrase) -> bool:
    """One English sentence in ten is not for training."""
    return zlib.crc32(" ".join(phrase.english).encode()) % 10 == 3


class TranslateTask:
    """Random sentences of the grammar, except the held-out sentences and noun–adjective pairs."""

    tokenizer = WordTokenizer((*_SPECIAL, *words()), start=_SPECIAL[0], end=_SPECIAL[1])

    def batch(self, random: Random, step: int) -> Batch:
        phrases: list[Phrase] = []
        while len(phrases) < _SENTENCES:
            phrase = grammar.sentence(random)
            if not _has_unseen_pair(phrase) and not is_held_out_sentence(phrase):
                phrases.append(phrase)
        source, padding = self.sources(phrases)
        french = [[_START, *self.french_ids(phrase)] for phrase in phrases]
        following = [[*ids[1:], _END] for ids in french]
        inputs, targets = _filled(french, _END), _filled(following, IGNORED)
        return Batch(inputs, targets, source, padding)

    def sources(self, phrases: list[Phrase]) -> tuple[Tensor, Tensor]:
        """English ids (B, S), and which of them are real (B, S)."""
        ids = [self.tokenizer.encode(" ".join(phrase.english)) for phrase in phrases]
        lengths = torch.tensor([len(row) for row in ids])
        filled = _filled(ids, _END)
        return filled, torch.arange(filled.shape[1]) < lengths[:, None]

    def french_ids(self, phrase: Phrase) -> list[int]:
        return self.tokenizer.encode(" ".join(phrase.french))

    def evaluation(self, module: Transformer, random: Random) -> Evaluation:
        sentences = _drawn(random, new_pair=False)
        pairs = _drawn(random, new_pair=True)
        aligned = self.alignment(module, [p for p in sentences + pairs if p.swapped])
        head, share = best(aligned)
        scores = {
            "exact_match": self.exact_match(module, sentences),
            "exact_match_new_pairs": self.exact_match(module, pairs),
            "alignment": share,
            "heads_that_align": float(sum(value >= 0.9 for value in aligned.values())),
        }
        label = f"{Place.named(head[0]).label}H{head[1]}"  # among the heads of cross-attention
        return Evaluation(scores, {"alignment": label})

    def exact_match(self, module: Transformer, phrases: list[Phrase]) -> float:
        """Share of sentences whose greedy translation is entirely right."""
        translated = zip(self.translate(module, phrases), phrases, strict=True)
        return float(np.mean([ids == self.french_ids(phrase) for ids, phrase in translated]))

    def translate(self, module: Transformer, phrases: list[Phrase]) -> list[list[int]]:
        """Greedy translations of a batch, without start and end."""
        place = next(module.parameters()).device
        source, padding = (tensor.to(place) for tensor in self.sources(phrases))
        with torch.inference_mode():
            memory = module.encode(source, padding)
            ids = torch.full((len(phrases), 1), _START, device=place)
            for _ in range(_CONTEXT - 1):
                following = module.decode(ids, memory, padding)[:, -1:].argmax(-1)
                ids = torch.cat([ids, following], 1)
                if bool(torch.eq(ids, _END).any(1).all()):
                    break
        rows = ids[:, 1:].tolist()
        return [row[: row.index(_END)] if _END in row else row for row in rows]

    def alignment(self, module: Transformer, phrases: list[Phrase]) -> dict[tuple[str, int], float]:
        """For each cross-attention head: how often the query that predicts a French word looks most at
        the English word that it translates, where noun and adjective changed places."""
        source, padding = self.sources(phrases)
        target = _filled([[_START, *self.french_ids(p)] for p in phrases], _END)
        place = next(module.parameters()).device
        recorder = Recorder(level="attention", explicit=True, source="encoder")
        with recording(recorder), torch.inference_mode():
            module(source.to(place), target.to(place), padding=padding.to(place))
        shares: dict[tuple[str, int], float] = {}
        for attention in recorder.attention:
            if attention.place.kind != "cross":
                continue
            most = attention.steps["weights"].argmax(-1).cpu().numpy()  # (B, H, T)
            for head in range(most.shape[1]):
                hits = [
                    most[row, head, word] in phrase.links[word]
                    for row, phrase in enumerate(phrases)
                    for word in phrase.swapped
                ]
                shares[attention.place.name, head] = float(np.mean(hits))
        return shares


def _has_unseen_pair(phrase: Phrase) -> bool:
    return any(is_held_out_pair(*pair) for pair in phrase.pairs)


def _drawn(random: Random, *, new_pair: bool) -> list[Phrase]:
    """Held-out sentences: with a held-out pair, or with none."""
    found: list[Phrase] = []
    while len(found) < _EXAM_SENTENCES:
        phrase = grammar.sentence(random)
        unseen = _has_unseen_pair(phrase)
        if unseen if new_pair else is_held_out_sentence(phrase) and not unseen:
            found.append(phrase)
    return found


def _filled(rows: list[list[int]], filler: int) -> Tensor:
    return pad_sequence([*map(torch.tensor, rows)], batch_first=True, padding_value=filler)


def recipe() -> Recipe:
    return Recipe(
        name="translate-en-fr",
        about="The encoder–decoder of 2017, small: it translates simple English into French.",
        data=(
            f"Sentences of a grammar made for this project ({len(NOUNS)} nouns, "
            f"{len(ADJECTIVES)} adjectives, {len(VERBS)} verbs), with agreement, "
            "elision and negation. One sentence in ten and one noun–adjective pair in ten are never "
            "learned from. Alignment is measured at the query that predicts a word."
        ),
        config=TransformerConfig(
            shape="encoder-decoder",
            d_vocab=TranslateTask.tokenizer.size,
            n_ctx=_CONTEXT,
            d_model=128,
            heads=4,
            encoder_layers=2,
            decoder_layers=2,
            d_mlp=512,
            norm_place="post",
            activation="relu",
            positions="sinusoidal",
            scaled_embedding=True,
            dropout=0.1,
        ),
        task=TranslateTask(),
        gates=(
            Gate("exact_match", at_least=0.98),
            Gate("exact_match_new_pairs", at_least=0.98),
            Gate("alignment", at_least=0.97),
        ),
        steps=4000,
        rate=1e-3,
        schedule="cosine",
        checkpoints=(0, 200, 500, 1000, 2000, 4000),
        measure_every=250,
    )
