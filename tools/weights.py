"""Fetches the pretrained models that tests need, once, before tests run side by side.

`python -m tools.weights` fails where one cannot be had: such tests must not be left out in silence.
"""

from model.download.entries import fetched
from model.loading.registry import models

NAMES = ("minilm", "smollm2-135m-instruct")


def main() -> None:
    for name in NAMES:
        print(f"{name}: {fetched(models[name], lambda sentence, share: None).name}", flush=True)


if __name__ == "__main__":
    main()
