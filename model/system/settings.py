"""Every setting of the app: environment variables, read here and nowhere else.

`python -m model.loading.settings_table` writes their table into the README.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_type_hints

from model.system.setting import (
    Metrics,
    Setting,
    address_of,
    always,
    check_folder,
    default_trace_megabytes,
    device_of,
    is_loopback,
    metrics_of,
    names_of,
    number,
    switch,
)

ADDRESS = "STREAMLIT_SERVER_ADDRESS"


@dataclass(frozen=True)
class Settings:
    """What the server's owner has decided. Made by `read`; the fields are explained there."""

    address: Annotated[
        str,
        Setting(
            ADDRESS,
            "address that the server listens on; `0.0.0.0` is every one",
            "`127.0.0.1`",
            str,
            always("127.0.0.1"),
        ),
    ]
    models: Annotated[
        tuple[str, ...] | None,
        Setting(
            "ATTENTION_MODELS",
            "models of the hub that visitors may choose beside the first five of the table above: names "
            "or hub ids, with commas between them; then nothing else is opened",
            "as the next two say",
            names_of,
            always(None),
        ),
    ]
    other_models: Annotated[
        bool,
        Setting(
            "ATTENTION_OTHER_MODELS",
            "whether visitors may open, and so download, any model of the hub",
            "`on` for who asks from this computer, not through a proxy, else `off`",
            switch,
            lambda local: local,
        ),
    ]
    folders: Annotated[
        bool,
        Setting(
            "ATTENTION_FOLDERS",
            "whether visitors may open a model from a folder of the server",
            "`on` for who asks from this computer, not through a proxy, else `off`",
            switch,
            lambda local: local,
        ),
    ]
    cache: Annotated[
        Path | None,
        Setting(
            "ATTENTION_CACHE",
            "folder for downloaded models",
            "`attention-visualizer` in the user's cache folder",
            Path,
            always(None),
        ),
    ]
    model_megabytes: Annotated[
        int,
        Setting(
            "ATTENTION_MODEL_MB",
            "megabytes of loaded models; the one used least recently makes room",
            "2000",
            number(1, 10**7),
            always(2000),
        ),
    ]
    trace_megabytes: Annotated[
        int,
        Setting(
            "ATTENTION_TRACE_MB",
            "megabytes of recent traces, shared by all visitors",
            "a tenth of the memory, 300 to 2000",
            number(1, 10**7),
            lambda local: default_trace_megabytes(),
        ),
    ]
    longest_text: Annotated[
        int,
        Setting(
            "ATTENTION_LONGEST_TEXT",
            "characters of a sentence, in the box or in a link",
            "20000",
            number(100, 10**6),
            always(20_000),
        ),
    ]
    pass_seconds: Annotated[
        int,
        Setting(
            "ATTENTION_PASS_SECONDS",
            "seconds after which a pass is ended with a sentence",
            "60",
            number(1, 86_400),
            always(60),
        ),
    ]
    longest_line: Annotated[
        int,
        Setting(
            "ATTENTION_LINE",
            "visitors who may wait in line for a pass; the next one is asked to come back",
            "200",
            number(1, 10**6),
            always(200),
        ),
    ]
    threads: Annotated[
        int | None,
        Setting(
            "ATTENTION_THREADS",
            "threads of one pass",
            "PyTorch's own choice, the number of cores",
            number(1, 1024),
            always(None),
        ),
    ]
    device: Annotated[
        str,
        Setting(
            "ATTENTION_DEVICE",
            "where models run: `cpu`, `cuda`, `cuda:1`, …; `auto`: CUDA where there is one",
            "`auto`",
            device_of,
            always("auto"),
        ),
    ]
    metrics: Annotated[
        Metrics,
        Setting(
            "ATTENTION_METRICS",
            "who may read `/metrics`: `local`: this computer, not through a proxy; `on`: everybody who "
            "reaches the server; `off`: nobody",
            "`local`",
            metrics_of,
            always("local"),
        ),
    ]
    hub: Annotated[
        str,
        Setting(
            "HF_ENDPOINT",
            "another hub than Hugging Face's",
            "`https://huggingface.co`",
            address_of,
            always("https://huggingface.co"),
        ),
    ]
    hub_home: Annotated[
        Path | None,
        Setting(
            "HF_HOME", "folder of the hub's library", "`~/.cache/huggingface`", Path, always(None)
        ),
    ]
    hub_cache: Annotated[
        Path | None,
        Setting(
            "HF_HUB_CACHE",
            "folder with models that other programs fetched from the hub",
            "`hub` in the folder of the hub's library",
            Path,
            always(None),
        ),
    ]
    user_cache: Annotated[
        Path | None,
        Setting("XDG_CACHE_HOME", "the user's cache folder", "`~/.cache`", Path, always(None)),
    ]

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


SETTINGS: dict[str, Setting] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Settings, include_extras=True).items()
}


def read(environment: Mapping[str, str], *, asked_here: bool = True) -> Settings:
    """The settings of an environment; an empty value counts as none.

    asked_here: whether they are for somebody at this computer. What is open there by default is closed to
    everybody else.
    Raises ValueError with a sentence that names the variable for a value that makes no sense.
    """
    local = asked_here and is_loopback(environment.get(ADDRESS) or "127.0.0.1")
    values: dict[str, object] = {}
    for name, one in SETTINGS.items():
        written = environment.get(one.variable, "").strip()
        try:
            values[name] = one.read(written) if written else one.default(local)
        except ValueError as error:
            raise _refusal(one, written, error) from error
    return Settings(**values)  # type: ignore[arg-type]


def check_at_start() -> None:
    """Raises ValueError as `read`, and for a folder of the settings that is none. A folder that breaks
    later is told where it is needed."""
    found = settings()
    for name, one in SETTINGS.items():
        if isinstance(folder := getattr(found, name), Path):
            try:
                check_folder(folder)
            except ValueError as error:
                raise _refusal(one, str(folder), error) from error


def _refusal(setting: Setting, written: str, error: ValueError) -> ValueError:
    return ValueError(f"{setting.variable} is {written[:60]!r}; {error}.")


@dataclass
class _Server:
    """What a server says once, when it starts."""

    asked_here: Callable[[], bool] = lambda: True


_server = _Server()


def settings() -> Settings:
    """The settings of this process, for whom this thread works, read anew: they cost microseconds. Raises
    ValueError as `read`."""
    return read(os.environ, asked_here=_server.asked_here())


def asked_here_when(asks: Callable[[], bool]) -> None:
    """Says how a server knows whether this thread works for somebody at this computer."""
    _server.asked_here = asks


def listens_on(address: str) -> None:
    """Says where the server listens, if that was decided elsewhere than in the environment."""
    os.environ[ADDRESS] = address


def environment_with(**more: str) -> dict[str, str]:
    """The environment of this process and more, for a program that is started."""
    return {**os.environ, **more}
