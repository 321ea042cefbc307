"""Every view with a long text of every kind of model: what it sends and what it computes with is bounded.

The bounds do not depend on the text. A view that draws every pair of tokens breaks them at this length: one
matrix of all pairs, with its mask, is 16 MB.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import PurePath

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import load_model
from model.trace.trace import Trace
from tests.folders import new_folder
from tests.model.hub_families import SPECIAL, WORDS
from tests.model.hub_models import build, save
from tests.pages.reading import control, shows, visit
from viz.elements.plot import WOULD_SEND
from viz.state.navigation import HOME, PAGES, entry
from viz.views.experiments.experiments import experiments

TOKENS = 1200
MESSAGE = 8_000_000  # bytes of one element; Streamlit refuses 20 MB, and shows its own error
COMPUTED = 70_000_000  # bytes that one run of a page allocates: 12 matrices of all pairs in single precision
VOCABULARY = len(SPECIAL) + len(WORDS)
SMALL = {"vocab_size": VOCABULARY, "max_position_embeddings": 4096}
PAIRS = {  # the views that draw pairs of tokens
    "home": ("Carries",),
    "all_heads": ("Maps", "First token"),
    "head": ("Map", "Matrices"),
    "compare": ("Two sentences", "Averages"),
}  # fmt: skip
# Every view on grouped keys; of another mask, of two stacks and of a file those that draw pairs.
WALKS = [("llama", PurePath(page.file).stem) for page in PAGES if page.reads and not page.lends]
WALKS += [(kind, page) for kind in ("encoder", "translator", "file") for page in PAIRS]
WALKS += [("translator", "prediction"), ("translator", "encoder_decoder")]
WITHIN = {  # choices within a view, each of which draws another matrix
    "Carries": ("Carries", "The whole head"),
    "First token": ("Number", "When it is hidden"),
    "Averages": ("On the right", "Mean of all heads", "Rollout"),
    "Matrices": ("Matrix", "W_V · W_O"),
}


@cache
def model_of(kind: str) -> str:
    """A small model that reads long texts, by the name that pages open it by."""
    folder = new_folder(f"long-{kind}")
    if kind == "llama":
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
        heads = {"num_attention_heads": 8, "num_key_value_heads": 2}
        body = build("LlamaForCausalLM", "LlamaConfig", SMALL | sizes | heads)
        return str(save(folder, body, adds=False))
    if kind == "encoder":
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
        body = build("BertForMaskedLM", "BertConfig", SMALL | sizes | {"num_attention_heads": 4})
        return str(save(folder, body, adds=True))
    if kind == "translator":
        sizes = {f"{stack}_layers": 2 for stack in ("encoder", "decoder")}
        sizes |= {f"{stack}_attention_heads": 4 for stack in ("encoder", "decoder")}
        sizes |= {f"{stack}_ffn_dim": 64 for stack in ("encoder", "decoder")}
        ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
        ids |= {"decoder_start_token_id": 2, "forced_eos_token_id": 2}
        body = build(
            "BartForConditionalGeneration", "BartConfig", SMALL | sizes | ids | {"d_model": 32}
        )
        body.final_logits_bias[0, ids["eos_token_id"]] = 30  # what it writes itself ends at once
        return str(save(folder, body, adds=True))
    if kind == "file":
        dice = np.random.default_rng(0)
        vectors = {name: dice.normal(size=(8, TOKENS, 8)) for name in ("query", "key", "value")}
        holes = dice.random((TOKENS, TOKENS)) < 0.5  # a mask that no rule says
        trace = Trace.from_arrays(
            **vectors, mask=holes | np.eye(TOKENS, dtype=bool), tokens=words()
        )
        trace.save(folder / "long.safetensors")
        return str(folder / "long.safetensors")
    return kind


def words(count: int = TOKENS) -> list[str]:
    return (["the", "cat", "saw", "the", "dog", "and", "the", "mat"] * count)[:count]


@cache
def text_of(kind: str) -> str:
    """As many tokens as the test asks for, or as many as the model reads."""
    if kind == "house-gpt":
        return load_model(kind).truncate(" ".join(words()))
    return "" if kind == "file" else " ".join(words(TOKENS - 2))


def elements(block: object) -> Iterator[object]:
    for child in getattr(block, "children", {}).values():
        yield from elements(child)
        if getattr(child, "proto", None) is not None:
            yield child


@pytest.fixture(autouse=True)
def counted() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def bounded(draw: Callable[[], AppTest], most: int = COMPUTED) -> AppTest:
    """A page with a long text, drawn within the bounds."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    app = draw()
    computed = tracemalloc.get_traced_memory()[1] - before
    assert not app.exception
    assert [error.value for error in app.error] == []
    for element in elements(app._tree):
        size = element.proto.ByteSize() if hasattr(element.proto, "ByteSize") else 0
        assert size <= MESSAGE, f"{element.type}: {size:,} bytes"
        # The last resort: a view draws less of its own.
        assert WOULD_SEND not in str(getattr(element, "value", ""))
    assert computed <= most, f"{computed:,} bytes"
    return app


def opened(kind: str, page: str, most: int = COMPUTED, **more: str) -> AppTest:
    given = {"model": model_of(kind), "text": text_of(kind)} | more
    return bounded(lambda: visit(page, **given), most)


def chosen(app: AppTest, label: str, option: str) -> None:
    bounded(lambda: control(app, label).set_value(option).run())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "page"), WALKS)
def test_every_view_of_a_long_text_is_bounded(kind: str, page: str) -> None:
    own = kind != "translator" or page == "encoder_decoder"
    app = opened(kind, page, **({} if own else {"target": " ".join(words(TOKENS - 2))}))
    (row,) = shows(app) or [None]
    views = row.options if row else []
    for show in entry(HOME).variants if page == "home" else ():  # its drawers
        app = opened(kind, page, show=show, scale="1.0")
        if show == "Carries":
            chosen(app, *WITHIN[show])
    for view in views if kind == "llama" or page not in PAIRS or not views else PAIRS[page]:
        if row and view != row.value:
            chosen(app, row.label, view)
        if kind == "llama" and view in WITHIN:
            label, *options = WITHIN[view]
            for option in options:
                chosen(app, label, option)


def test_all_pairs_of_a_vocabulary_are_bounded() -> None:
    opened("house-gpt", "head", most=2 * COMPUTED, show="Matrices")


@pytest.mark.slow
@pytest.mark.parametrize("show", [one.show for one in experiments()])
def test_an_experiment_with_a_long_text_is_bounded(show: str) -> None:
    app = opened("llama", "experiments", show=show)
    for guess in app.segmented_control:
        if guess.key == f"guess-{show}":
            bounded(guess.set_value(guess.options[0]).run)


def test_a_picture_that_forgets_the_bound_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def page() -> None:
        import numpy as np
        import plotly.graph_objects as go

        from viz.elements.plot import plot

        plot(go.Figure(go.Heatmap(z=np.zeros((1000, 1001), np.float32))), "large")

    app = AppTest.from_function(page, default_timeout=120).run()
    assert not app.exception
    assert not app.get("plotly_chart")
    assert "5.3 MB" in app.info[0].value  # 1,000 · 1,001 numbers of 4 bytes, in base64
    monkeypatch.setattr("viz.elements.plot.LARGEST", 6_000_000)
    assert AppTest.from_function(page, default_timeout=120).run().get("plotly_chart")
