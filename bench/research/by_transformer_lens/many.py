import pandas as pd
from transformer_lens import TransformerBridge

names = [("Tom", "Hill"), ("Anna", "Reed"), ("Sam", "Hill"), ("Mary", "Reed")]
text = "{} {} saw a red ball. Ben gave the ball to {}"
model = TransformerBridge.boot_transformers("house-gpt")
model.cfg.default_prepend_bos = False
rows = []
for first, last in names:
    for condition, end in (("same name", first), ("other name", "Max")):
        prompt = text.format(first, last, end)
        surname = model.get_token_position(" " + last, prompt)
        _, cache = model.run_with_cache(prompt)
        weights = cache.stack_activation("pattern")[:, 0, :, -1, surname]
        for layer in range(model.cfg.n_layers):
            for head in range(model.cfg.n_heads):
                rows.append((layer, head, condition, weights[layer, head].item()))
frame = pd.DataFrame(rows, columns=["layer", "head", "condition", "weight"])
heads = frame.groupby(["layer", "head", "condition"])["weight"].agg(["mean", "std"]).unstack()
heads.to_csv("conditions.csv")
print(heads["mean"].nlargest(4, "same name").round(2).to_string())
