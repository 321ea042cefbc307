import plotly.express as px
import torch
from transformer_lens import TransformerBridge

model = TransformerBridge.boot_transformers("house-gpt")
model.cfg.default_prepend_bos = False
tokens = model.to_tokens("Tom Hill saw a red ball. Anna gave the ball to Tom")
_, cache = model.run_with_cache(tokens)
layer, head, query, key = 1, 7, 12, 1
heads = torch.stack([cache["z", 0][0, :, h] @ model.W_O[0, h] for h in range(model.cfg.n_heads)])
written = torch.cat([cache["embed"], cache["pos_embed"], heads, cache["mlp_out", 0]])
parts = torch.cat([written, model.b_O[0].expand_as(written[:1])])  # (part, token, d_model)
names = ["token", "position", *(f"head {h}" for h in range(model.cfg.n_heads)), "mlp", "bias"]
norm = model.blocks[layer].ln1
centred = parts - parts.mean(-1, keepdim=True)
read = centred / cache["scale", layer, "ln1"][0] * norm.weight
sides = []
for at, matrix, bias in ((query, model.W_Q, model.b_Q), (key, model.W_K, model.b_K)):
    side = read[:, at] @ matrix[layer, head]
    side[-1] += norm.bias @ matrix[layer, head] + bias[layer, head]
    sides.append(side)
values = sides[0] @ sides[1].T
px.imshow(values.detach(), x=names, y=names).write_html("parts.html")
row, column = divmod(values.argmax().item(), len(names))
recorded = cache["q", layer][0, query, head] @ cache["k", layer][0, key, head]
print(names[row], names[column], f"{values.max():.2f}")
print(f"{values.sum():.2f} {recorded:.2f}")
