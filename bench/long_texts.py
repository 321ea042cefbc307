"""Long texts: SmolLM2 at 2,048 tokens, and a random model with a sliding window at 8,192. From Enter in the
sentence box to the picture, then another head; and the server's memory.
"""

from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser

from bench import gpt2_size
from bench.chromium import Tab, browsing, tab
from bench.clicks import PAINTED, PAUSE, PRESS
from bench.quantiles import median, p90
from tests.model import hub_models
from tests.server import Server, serving

WINDOW, CONTEXT = 1024, 8192
SIZES = {
    "vocab_size": 32_000,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "sliding_window": WINDOW,
}
SETTINGS = {"ATTENTION_LONGEST_TEXT": "50000"}  # characters: 8,192 words are more than the default
HEADS = (1, 0)  # in turn; both come in the first message
TIMES, FEW = 20, 4


def measure(scratch: Path, short: bool) -> dict[str, object]:
    windowed = scratch / "windowed"
    body = hub_models.build("MistralForCausalLM", "MistralConfig", SIZES)
    hub_models.save(windowed, body, adds=False)
    words = hub_models.WORDS
    long = " ".join(words[at % len(words)] for at in range(CONTEXT))
    cases = (
        ("SmolLM2", "smollm2-135m-instruct", gpt2_size.text_of(2048).strip(), 2048),
        (f"random, window of {WINDOW:,}", str(windowed), long, CONTEXT),
    )
    rows = []
    for title, model, text, tokens in cases:
        with serving(scratch / "server.log", more=SETTINGS) as server, browsing() as browser:
            found = _opened(browser, server, model, text, tokens, FEW if short else TIMES)
            rows.append({"model": title, "tokens": tokens} | found)
            print(rows[-1], flush=True)
    return {"rows": rows}


def _opened(
    browser: Browser, server: Server, model: str, text: str, tokens: int, times: int
) -> dict[str, object]:
    """One text read after a short one, so that the model is loaded."""
    with tab(browser, server.address) as opened:
        view = {"model": model, "text": "the cat", "place": "decoder.0.self", "head": 0}
        opened.page.goto(f"/?{urlencode(view)}")
        opened.explorer()
        opened.rest(1500)
        before = server.memory
        box = opened.page.get_by_role("textbox", name="Your sentence")
        box.fill(text)
        wanted = f"explorerRoot().dataset.queries === '{tokens}' && {PAINTED}"
        first = opened.milliseconds(lambda: box.press("Enter"), wanted, "keydown", PAUSE)
        opened.explorer()
        heads = _heads(opened, times)
        if opened.troubles:
            raise RuntimeError(f"The page failed: {opened.troubles}")
        return {
            "first_picture_ms": first,
            "head_ms": median(heads),
            "head_p90_ms": p90(heads),
            "before_mb": round(before),
            "after_mb": round(server.memory),
            "peak_mb": round(server.peak),
        }


def _heads(opened: Tab, times: int) -> list[float]:
    """Milliseconds from a click on another head to its picture."""
    opened.page.get_by_test_id("head-picker").press("Enter")
    passed = []
    for at in range(times):
        head = HEADS[at % len(HEADS)]
        button = opened.page.get_by_test_id(f"head-{head}")
        wanted = f"explorerRoot().dataset.head === '{head}' && {PAINTED}"
        click = partial(button.click, delay=PRESS)
        passed.append(opened.milliseconds(click, wanted))
        opened.rest()
    return passed
