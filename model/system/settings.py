"""Every setting of the app: environment variables, read here and nowhere else.

`python -m tools.tables_of_docs` writes their table into docs/settings.md.
"""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, HttpUrl, ValidationError

from model.system.addresses import ORIGINS, is_loopback, origins
from model.system.machine import machine_bytes

ADDRESS = "STREAMLIT_SERVER_ADDRESS"
MEGABYTE = 1_000_000
REAL_MODEL = "smollm2-135m-instruct"  # a language model of a hundred megabytes
SETTING_OF_TRACES = "ATTENTION_TRACE_MB"
LEAST_TRACE_MB, MOST_TRACE_MB = 300, 2000
OPEN_HERE = "`on` for visitors on this computer who do not come through a proxy, otherwise `off`"

Precision = Literal["float32", "bfloat16", "float16"]
Switch = Annotated[bool, BeforeValidator({"on": True, "off": False}.get)]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[
    tuple[Name, ...], BeforeValidator(lambda written: [name.strip() for name in written.split(",")])
]
Origins = Annotated[tuple[str, ...], BeforeValidator(origins)]
OptionalName = Annotated[
    str | None, BeforeValidator(lambda written: None if written == "none" else written)
]
Address = Annotated[str, AfterValidator(lambda written: HttpUrl(written) and written.rstrip("/"))]


def asked_at_this_computer(above: Mapping[str, Any]) -> bool:
    return above["asked_here"] and is_loopback(above["address"])


def fetched_by_default(above: Mapping[str, Any]) -> str | None:
    """The real language model, where it may be opened anyway."""
    listed = above["models"]
    may_open = asked_at_this_computer(above) if listed is None else REAL_MODEL in listed
    return REAL_MODEL if may_open and is_loopback(above["address"]) else None


def default_trace_megabytes() -> int:
    """A tenth of the machine's memory. A trace of 1,024 tokens of a GPT-2 takes 440 MB, and an intervention
    is shown beside the unchanged run, so two of them are kept."""
    return min(max(machine_bytes() // MEGABYTE // 10, LEAST_TRACE_MB), MOST_TRACE_MB)


def variable(
    name: str, default: object, meaning: str, *, told: str = "", must: str = "", **checks: Any
) -> Any:
    """The field of a variable.

    Args:
        default: a function is called, with the fields above it where it takes an argument.
        meaning: in the table of settings.
        told: the default in words; "": as it is.
        must: what a value must be; bounds of whole numbers say so themselves.
        checks: of pydantic.
    """
    filled: dict[str, Any] = {"default_factory" if callable(default) else "default": default}
    told = told or (f"`{default}`" if isinstance(default, str) else str(default))
    if checks.keys() == {"ge", "le"}:
        must = f"a whole number from {checks['ge']:,} to {checks['le']:,}"
    return Field(alias=name, description=meaning, title=told, examples=[must], **filled, **checks)


class Settings(BaseModel, frozen=True):
    """What the server's owner has decided. Made by `read`."""

    asked_here: bool = True  # whether these settings are for somebody at this computer
    address: str = variable(
        ADDRESS,
        "127.0.0.1",
        "address that the server listens on; `0.0.0.0` means all addresses",
    )
    models: Names | None = variable(
        "ATTENTION_MODELS",
        None,
        "models of the hub that visitors may choose besides the first five in the table above: "
        "names or hub ids, separated by commas; then no others can be opened",
        told="decided by the next two settings",
        must="names separated by commas",
    )
    other_models: Switch = variable(
        "ATTENTION_OTHER_MODELS",
        asked_at_this_computer,
        "whether visitors may open, and so download, any model of the hub, and the untrained ones of over "
        "100 MB",
        told=OPEN_HERE,
        must="on or off",
    )
    folders: Switch = variable(
        "ATTENTION_FOLDERS",
        asked_at_this_computer,
        "whether visitors may open a model from a folder of the server, or a trace file that lies there",
        told=OPEN_HERE,
        must="on or off",
    )
    trace_files: Switch = variable(
        "ATTENTION_TRACE_FILES",
        asked_at_this_computer,
        "whether visitors may drop trace files, and texts for a profile, on a page, for their own session "
        "alone",
        told=OPEN_HERE,
        must="on or off",
    )
    fetch: OptionalName = variable(
        "ATTENTION_FETCH",
        fetched_by_default,
        "model that the server fetches in the background when it starts, loads if this computer has 8 GB of "
        "memory, and offers on Explore; `none`: it fetches nothing",
        told=f"`{REAL_MODEL}` for visitors on this computer who do not come through a proxy, otherwise "
        "`none`",
    )
    cache: Path | None = variable(
        "ATTENTION_CACHE",
        None,
        "folder for downloaded models",
        told="`attention-visualizer` in the user's cache folder",
    )
    model_megabytes: int = variable(
        "ATTENTION_MODEL_MB",
        2000,
        "megabytes of loaded models; when they are full, the least recently used model is dropped",
        ge=1,
        le=10**7,
    )
    trace_megabytes: int = variable(
        SETTING_OF_TRACES,
        default_trace_megabytes,
        "megabytes of recent traces, shared by all visitors, and of those that each model leaves on a GPU; "
        "no larger trace file is read",
        ge=1,
        le=10**7,
        told="a tenth of the memory, 300 to 2000",
    )
    longest_text: int = variable(
        "ATTENTION_LONGEST_TEXT",
        20_000,
        "characters of a sentence, in the box or in a link",
        ge=100,
        le=10**6,
    )
    pass_seconds: int = variable(
        "ATTENTION_PASS_SECONDS",
        60,
        "seconds after which a pass is stopped, with a message to the visitor",
        ge=1,
        le=86_400,
    )
    longest_queue: int = variable(
        "ATTENTION_LINE",
        200,
        "visitors who may wait in the queue for a pass; any further ones are asked to try again "
        "later",
        ge=1,
        le=10**6,
    )
    threads: int | None = variable(
        "ATTENTION_THREADS",
        None,
        "threads of one pass",
        ge=1,
        le=1024,
        told="PyTorch's own choice, the number of cores",
    )
    device: str = variable(
        "ATTENTION_DEVICE",
        "auto",
        "where models run: `cpu`, `cuda`, `cuda:1`, `mps` (a Mac's graphics processor), …; `auto`: CUDA "
        "where there is one, else `mps` where there is one",
        must="auto, cpu, mps, cuda, or cuda:1 and the like",
        pattern=r"^(auto|cpu|mps|cuda(:[0-9]{1,3})?)$",
    )
    precision: Precision = variable(
        "ATTENTION_DTYPE",
        "float32",
        "numbers that the hub's models run with: `float32`; or, with half the memory on CUDA, `bfloat16` or "
        "`float16`, whose rounding the pages then show",
        must="float32, bfloat16 or float16",
    )
    cluster: str | None = variable(
        "ATTENTION_CLUSTER",
        None,
        "[Ray cluster](cluster.md) that runs the models for all replicas of the app: `HOST:PORT` of its "
        "head; `auto`, that of this machine; `local`, one that starts and ends with the app",
        told="none: this process runs them",
        must="HOST:PORT, auto or local",
        pattern=r"^(auto|local|[^\s/]+:[0-9]{1,5})$",
    )
    cluster_copies: int = variable(
        "ATTENTION_CLUSTER_COPIES",
        1,
        "actors of one model, at most; another one begins where three passes wait for each",
        ge=1,
        le=1000,
    )
    cluster_gpus: float = variable(
        "ATTENTION_CLUSTER_GPUS", 0.0, "share of a GPU of each model there", ge=0, le=64
    )
    cluster_idle: int = variable(
        "ATTENTION_CLUSTER_IDLE",
        1800,
        "seconds after which a model that nobody asks is unloaded from the cluster",
        ge=10,
        le=10**7,
    )
    metrics: Literal["local", "on", "off"] = variable(
        "ATTENTION_METRICS",
        "local",
        "who may read `/metrics`: `local`, this computer without a proxy; `on`, everybody who "
        "reaches the server; `off`, nobody",
        must="local, on or off",
    )
    frame_ancestors: Origins = variable(
        "ATTENTION_FRAME_ANCESTORS",
        (),
        "who may show the app in a frame of their own pages: origins with spaces between them, such as "
        "`https://class.example.org`, `https://*.example.org` or `'self'` ([Embedding](embedding.md))",
        told="nobody",
        must=ORIGINS,
    )
    hub: Address = variable(
        "HF_ENDPOINT",
        "https://huggingface.co",
        "another hub than Hugging Face's",
        must="an address that begins with http:// or https://",
    )
    hub_home: Path | None = variable(
        "HF_HOME", None, "folder of the hub's library", told="`~/.cache/huggingface`"
    )
    hub_cache: Path | None = variable(
        "HF_HUB_CACHE",
        None,
        "folder of models that other programs have downloaded from the hub",
        told="`hub` in the folder of the hub's library",
    )
    user_cache: Path | None = variable(
        "XDG_CACHE_HOME", None, "the user's cache folder", told="`~/.cache`"
    )

    @property
    def trace_bytes(self) -> int:
        """Bytes of recent traces, and of the largest file of numbers that is read."""
        return self.trace_megabytes * MEGABYTE

    @property
    def is_local(self) -> bool:
        """Whether only this computer can reach the server."""
        return is_loopback(self.address)

    @property
    def cache_folder(self) -> Path:
        """Where downloaded models lie."""
        return self.cache or self._user_cache / "attention-visualizer"

    @property
    def hub_cache_folder(self) -> Path:
        """Where the hub's own library keeps models."""
        return self.hub_cache or (self.hub_home or self._user_cache / "huggingface") / "hub"

    @property
    def _user_cache(self) -> Path:
        return self.user_cache or Path.home() / ".cache"


# The field of each variable: its alias is the variable's name, its description what it means, its title the
# default in words, and its example what a value must be.
VARIABLES = {field.alias: field for field in Settings.model_fields.values() if field.alias}


def read(environment: Mapping[str, str], *, asked_here: bool = True) -> Settings:
    """The settings of an environment; an empty value counts as none.

    asked_here: whether they are for somebody at this computer. What is open there by default is closed to
    everybody else.
    Raises ValueError with a sentence that names the variable for a value that makes no sense.
    """
    written = ((name, environment.get(name, "").strip()) for name in VARIABLES)
    return _validated(tuple((name, value) for name, value in written if value), asked_here)


@lru_cache(maxsize=8)
def _validated(given: tuple[tuple[str, str], ...], asked_here: bool) -> Settings:
    try:
        return Settings.model_validate({"asked_here": asked_here, **dict(given)})
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        must = (VARIABLES[name].examples or [""])[0]
        raise _refusal(name, dict(given).get(name, ""), f"it must be {must}") from error


def check_at_start() -> None:
    """Raises ValueError as `read`, and for a folder of the settings that is none. One that does not exist is
    made when it is needed; one that breaks later is told there."""
    for name, value in settings().model_dump(by_alias=True).items():
        if not isinstance(value, Path):
            continue
        try:
            is_folder = stat.S_ISDIR(value.stat().st_mode)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _refusal(name, str(value), f"it must be a folder ({error.strerror})") from error
        if not is_folder or not os.access(value, os.R_OK | os.X_OK):
            raise _refusal(name, str(value), "it must be a folder that can be read")


def _refusal(name: str, written: str, why: str) -> ValueError:
    return ValueError(f"{name} is {written[:60]!r}; {why}.")


@dataclass
class _ServerSettings:
    """What a server says once, when it starts."""

    settings: Callable[[], Settings] = lambda: settings_of(asked_here=True)


_server = _ServerSettings()


def settings() -> Settings:
    """The settings for the visitor for whom this thread works. Raises ValueError as `read`."""
    return _server.settings()


def settings_of(*, asked_here: bool) -> Settings:
    """The settings for a request, before it is known which visitor's it is. Raises ValueError as `read`."""
    return read(os.environ, asked_here=asked_here)


def settings_come_from(reads: Callable[[], Settings]) -> None:
    """Says how a server finds the settings for the visitor for whom a thread works."""
    _server.settings = reads


def listens_on(address: str) -> None:
    """Says where the server listens, if that was decided elsewhere than in the environment."""
    os.environ[ADDRESS] = address


def environment_with(**more: str) -> dict[str, str]:
    """The environment of this process and more, for a program that is started."""
    return {**os.environ, **more}
