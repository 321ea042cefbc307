"""The way of a sentence through a model, as a strip of its own sizes."""

import streamlit as st

from viz.state.look import Look


def pipeline(seen: Look) -> None:
    """Tokens, vectors, layers, result: one card each, with the numbers of this run."""
    config, trace = seen.model.config, seen.trace
    layers = config.encoder_layers + config.decoder_layers
    cards = [
        ("Tokens", f"{len(trace.tokens)}", "the sentence, cut into pieces"),
        ("Vectors", f"{len(trace.tokens)} × {config.d_model}", "one row of numbers for each token"),
        ("Attention", f"{layers} × {config.heads}", "layers × heads, which mix the rows"),
    ]
    if config.d_mlp:
        wide = f"{config.d_model} → {config.d_mlp} → {config.d_model}"
        cards.append(("Feed-forward", wide, "each row alone"))
    if trace.prediction is None:
        size = f"{len(trace.tokens)} × {config.d_model}"
        cards.append(("Result", size, "one vector for each token, in its context"))
    else:
        size = f"{trace.prediction.vocabulary:,}"
        cards.append(("Prediction", size, "probabilities for the next token"))
    with st.container(horizontal=True, gap="small", key="pipeline"):  # a grid: viz/shell/style.css
        for name, size, words in cards:
            with st.container(border=True, height="stretch", gap="xxsmall"):
                st.caption(name)
                st.markdown(f"**{size}**")
                st.caption(words)
