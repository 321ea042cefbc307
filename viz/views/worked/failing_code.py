"""Code that fails, run before the reader's eyes: its message, what it means, and the mended code."""

from collections.abc import Mapping
from functools import partial

import streamlit as st

from model.worked.failing_code import FailingCode, RunResult, failing_code
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Panel

say = sentences_of("worked.failing_code")

_LABELS = {
    "batch": "Sequences",
    "length": "Tokens",
    "width": "Width",
    "heads": "Heads",
    "head_width": "Head width",
    "context": "Context length",
    "real_tokens": say("real_tokens"),
}


def code_that_fails() -> Panel:
    """One piece of code, with sizes to choose: as it fails, beside the mended one."""
    by_name = failing_code()
    names = sorted(by_name, key=lambda name: not by_name[name].mistake)  # those of the notes first
    name = st.selectbox(
        "Code", names, format_func=lambda name: by_name[name].title, key="failing", width=360
    )
    chosen = by_name[name]
    sizes = {
        name: st.selectbox(
            _LABELS[name],
            range(size.lowest, size.highest + 1),
            index=size.value - size.lowest,
            key=f"failing-{chosen.name}-{name}",
        )
        for name, size in chosen.sizes.items()
    }
    whence = "From" if chosen.mistake else "Compare"
    return Panel(
        "failing",
        look_for=say("python_pytorch_answer"),
        picture=partial(_drawn, chosen, sizes),
        below=[Caption(plain(say("code_app_own", whence=whence, source=chosen.source)))],
    )


def _drawn(chosen: FailingCode, sizes: Mapping[str, int]) -> None:
    wrong, mended = (chosen.run(code, sizes) for code in (chosen.wrong, chosen.mended))
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**As it fails**")
        st.code(chosen.shown(chosen.wrong, sizes), language="python", wrap_lines=True)
        _tell(wrong)
        if wrong.failed or wrong.is_nan:
            st.markdown(f"**What it means.** {chosen.why}")
        elif not chosen.draws:
            _tell_apart(wrong, mended)
    with right:
        st.markdown("**Mended**")
        st.code(chosen.shown(chosen.mended, sizes), language="python", wrap_lines=True)
        _tell(mended)


def _tell(outcome: RunResult) -> None:
    """The message, word for word, or the shape of the result."""
    if outcome.result is None:
        st.markdown(say("stops_message"))
        st.code(f"{outcome.kind}: {outcome.message}", language=None, wrap_lines=True)
        return
    shape = say("runs_result_shape", tuple=tuple(outcome.result.shape))
    if outcome.is_nan:
        bad = int(outcome.result.isnan().sum())
        st.markdown(
            say("without_message_numbers", shape=shape, bad=bad, numel=outcome.result.numel())
        )
    else:
        st.markdown(f"{shape}.")


def _tell_apart(wrong: RunResult, mended: RunResult) -> None:
    """What a run that raises nothing computes, beside what it should."""
    if wrong.result is None or mended.result is None:
        return
    if wrong.result.shape != mended.result.shape:
        st.markdown(say("sizes_nothing_raised"))
        return
    apart = float((wrong.result - mended.result).abs().max())
    if apart == 0:
        st.markdown(say("sizes_both_give"))
    else:
        st.markdown(say("sizes_nothing_raised_numbers", apart=apart))
