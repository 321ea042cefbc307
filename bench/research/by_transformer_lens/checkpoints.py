import plotly.express as px
from transformer_lens import TransformerBridge

steps = (0, 100, 200, 300, 400, 600, 1000)
text = "A B C D E F A B C D E F"
weights = {}
for step in steps:
    model = TransformerBridge.boot_transformers(f"induction/step-{step}")
    model.cfg.default_prepend_bos = False
    _, cache = model.run_with_cache(text)
    weights[step] = cache["pattern", 1][0, 2]
    print(step, f"{weights[step][11, 6]:.2f}")  # from the second F to the A that followed the first
difference = weights[steps[-1]] - weights[steps[0]]
figure = px.imshow(difference.detach(), color_continuous_scale="RdBu", color_continuous_midpoint=0)
figure.write_html("learned.html")
