"""A test of many cases is one item: its cases share what is made once, and are told apart where they fail."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def cases(names: str, given: Iterable[Any]) -> Callable[[Test], Test]:
    """Calls a test with each case, as a subtest; names: of its parameters, as in `parametrize`. Each case has
    patches and a folder of its own where the test takes `monkeypatch` or `tmp_path`."""
    named, listed = names.split(", "), list(given)

    def of_each(test: Test) -> Test:
        @wraps(test)
        def call(subtests: pytest.Subtests, **fixtures: Any) -> None:
            folder = fixtures.get("tmp_path")
            for number, one in enumerate(listed):
                case = dict(zip(named, one if len(named) > 1 else [one], strict=True))
                with subtests.test(**case), pytest.MonkeyPatch.context() as patch:
                    if "monkeypatch" in fixtures:
                        fixtures["monkeypatch"] = patch
                    if folder is not None:
                        fixtures["tmp_path"] = folder / str(number)
                        fixtures["tmp_path"].mkdir()
                    test(**case, **fixtures)

        taken = inspect.signature(test).parameters
        asked = [one for name, one in taken.items() if name not in named]
        own = inspect.signature(call, follow_wrapped=False).parameters["subtests"]
        call.__signature__ = inspect.Signature([own, *asked])  # type: ignore[attr-defined]
        return call

    return of_each
