"""No page says of the open model what its modules contradict; the facts are read from the modules."""

from pathlib import Path

import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest
from torch import Tensor

from model.nn.positions import ROTARY
from model.worked import examples
from tests.cases import cases
from tests.pages.kinds import KINDS, name_of
from tests.pages.module_facts import Facts, facts
from tests.pages.reading import control, own
from viz.explorer.message import payload
from viz.notation.head_formulas import concatenation, logit
from viz.notation.markdown import plain
from viz.shell.frame import HAND, IDEA, WAYS
from viz.views.feed_forward.formulas import feed_forward
from viz.views.glossary.glossary import term
from viz.views.translation.views import projections

PAGES = Path(__file__).resolve().parents[2] / "pages"
NAMES = ("llama", "minilm", "induction", "translate-en-fr")
FILES = (
    "home", "all_heads", "tokens", "positions", "layer_norm", "feed_forward",
    "prediction", "shapes_and_cost",
)  # fmt: skip
BEATS = (*[file for file in FILES if file != "home"], "encoder_decoder", "training")
GENERAL = ("library", "training", "worked_examples")  # speak of no open model


def said(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.latex)
    texts = [element.value for kind in kinds for element in kind]
    for frame in (table.value for table in app.dataframe):
        texts += [*map(str, frame.columns), *map(str, frame.get("formula", []))]
    return "\n".join(texts)


def page(name: str, file: str) -> AppTest:
    """A page with this model, as it opens."""
    app = AppTest.from_file(str(PAGES / f"{file}.py"), default_timeout=120)
    app.query_params["model"], app.query_params["text"] = name_of(name), KINDS[name]
    app.run()
    assert not app.exception
    return app


def ideas(known: Facts) -> dict[str, tuple[tuple[str, bool], ...]]:
    """What the idea of a page says of the open model, and whether that is so."""
    return {
        "all_heads": (("share each head of keys", known.shares_keys), ("b_O", known.output_bias)),
        "layer_norm": (("has RMS norms", not known.centres),),
        "feed_forward": (
            ("has attention only", not known.feed_forward),
            ("b_1", known.hidden_bias and known.feed_forward),
        ),
        "prediction": (("is an encoder", known.sees_all),),
        "shapes_and_cost": ((r"B \times g", known.shares_keys),),
    }


@pytest.mark.parametrize("name", NAMES)
def test_what_an_idea_says_of_the_open_model_is_so(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = st.expander
    monkeypatch.setattr(
        st, "expander", lambda label, *given, **more: closed(label, label == IDEA, **more)
    )
    for file, claims in ideas(facts(name_of(name))).items():
        text = said(page(name, file))
        assert [words for words, so in claims if (words in text) != so] == [], file


@pytest.mark.parametrize("file", BEATS)
def test_what_is_worked_by_hand_opens_by_its_title_and_speaks_of_no_open_model(file: str) -> None:
    app = page("llama", file)
    control(app, WAYS).set_value(HAND).run()
    assert "Next →" in [button.label for button in app.button]
    assert "this model" not in said(app).lower()
    for box in [box for box in app.selectbox if str(box.key).startswith("example-of-")]:
        for title in (box.options[-1], box.options[0]):
            app.selectbox(key=str(box.key)).select(title).run()
            shown = next(one for one in examples() if one.title == title).steps[0]
            assert f"**{plain(shown.title)}" in said(app)
            assert "this model" not in said(app).lower()


@cases("file", GENERAL)
def test_a_page_of_no_model_claims_nothing_of_the_open_one(file) -> None:
    text = said(page("llama", file))
    assert "this model" not in text.lower()


def test_no_term_gives_every_head_keys_of_its_own() -> None:
    head = term("Head").meaning
    assert facts(name_of("llama")).shares_keys
    assert "shared with" in head


@cases("name", NAMES)
def test_what_the_idea_writes_of_the_open_model_is_what_its_modules_have(name) -> None:
    torch.manual_seed(0)
    known, config = facts(name_of(name)), own(name_of(name)).config
    assert ("b_1" in feed_forward(config)) == (known.hidden_bias or not known.feed_forward)
    assert ("b_O" in concatenation(config)) == known.output_bias
    assert (r"\beta" in logit(config)) == known.beta
    assert (r"\bar p" in logit(config)) == known.centres
    assert ("b_Q" in projections("X", "X", bias=config.qkv_bias)) == known.vector_bias


@cases("name", NAMES)
def test_the_explorer_writes_what_the_modules_have(name) -> None:
    torch.manual_seed(0)
    model, known = own(name_of(name)), facts(name_of(name))
    trace = model.trace(KINDS[name])
    attention = trace.attention[0]
    message = payload(
        attention,
        queries=[token.text for token in trace.queries_of(attention)],
        keys=[token.text for token in trace.keys_of(attention)],
        head=0,
        check=None,
    )
    stages, formulas = message["stages"], message["formulas"]
    assert isinstance(stages, list)
    assert isinstance(formulas, dict)
    names = [stage["name"] for stage in stages]
    assert ("masked" in names) == (attention.kind == "causal")
    assert ("masked" in names) != (known.sees_all or attention.stack == "encoder")
    assert ("b_Q" in formulas["query"]["general"]) == known.vector_bias
    assert ("R_i" in formulas["query"]["general"]) == (not known.adds)


def test_the_rotary_formula_has_the_pairs_that_llama_turns() -> None:
    model = own(name_of("llama"))
    seen: list[Tensor] = []
    layer = model.module.body.model.layers[0].self_attn
    hook = layer.q_proj.register_forward_hook(lambda _, __, gave: seen.append(gave.clone()))
    trace = model.trace(KINDS["llama"])
    hook.remove()
    width = model.config.head_width
    plain = seen[-1][0].view(len(trace.tokens), -1, width).transpose(0, 1)
    turned = torch.tensor(trace.attention[0].query)
    halves = [x.unflatten(-1, (2, -1)).norm(dim=-2) for x in (plain, turned)]
    assert torch.allclose(*halves, rtol=1e-3, atol=1e-3)
    formula = ROTARY.formula(model.config)
    assert "q_{i+r/2}" in formula
    assert "2i+1" not in formula
