"""Runs in an environment that has the package: `python core_examples.py TEXT MODULE …`.

Prints as JSON: which public names are refused, and with which sentence; what examples print that does not
stand there; how many ran; which packages are in memory at the end.
"""

import doctest
import inspect
import json
import pydoc
import sys
from importlib import import_module

import numpy as np
from attention_lens import load_model

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def main(text: str, modules: list[str]) -> None:
    model = load_model("house-gpt")
    known = {"model": model, "trace": model.trace(text), "np": np}
    refused: dict[str, str] = {}
    printed: list[str] = []
    ran = 0
    runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
    for module in map(import_module, modules):
        pydoc.render_doc(module)
        for name in module.__all__:
            try:
                value = getattr(module, name)
            except ImportError as error:
                refused[name] = f"{type(error).__name__}: {error}"
                continue
            doc = inspect.getdoc(value) or ""
            test = doctest.DocTestParser().get_doctest(doc, dict(known), name, None, 0)
            ran += runner.run(test, out=printed.append).attempted
    packages = sorted({name.partition(".")[0] for name in sys.modules})
    print(json.dumps([refused, printed, ran, packages]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
