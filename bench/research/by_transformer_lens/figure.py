import shutil
import subprocess
from pathlib import Path

import numpy as np
import plotly.express as px
from transformer_lens import TransformerBridge

model = TransformerBridge.boot_transformers("house-gpt")
model.cfg.default_prepend_bos = False
text = "The cat sat on the mat"
_, cache = model.run_with_cache(text)
weights, words = cache["pattern", 0][0, 1].numpy(force=True), model.to_str_tokens(text)
figure = px.imshow(weights, zmin=0, zmax=1).update_layout(width=380, height=360)
figure.update_xaxes(tickvals=[*range(len(words))], ticktext=words)
figure.update_yaxes(tickvals=[*range(len(words))], ticktext=words)
page = "<style>@page {size: 380px 360px; margin: 0} body {margin: 0}</style>"
Path("head.html").write_text(page + figure.to_html(include_plotlyjs=True))
np.savetxt("head.csv", weights, "%.6f", delimiter=",")
if browser := shutil.which("chromium") or shutil.which("google-chrome"):
    options = ["--headless", "--no-sandbox", "--no-pdf-header-footer", "--print-to-pdf=head.pdf"]
    subprocess.run([browser, *options, "head.html"], check=True, capture_output=True)
print(*sorted(file.name for file in Path().glob("head.*")))
