"""A plain page of Streamlit with one Plotly heatmap: what the first picture of the app is measured beside.

`streamlit run bench/plain_page.py`. The numbers are those of a table of products.
"""

import plotly.graph_objects as go
import streamlit as st

st.plotly_chart(
    go.Figure(go.Heatmap(z=[[row * column for column in range(10)] for row in range(10)]))
)
