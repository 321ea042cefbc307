import plotly.express as px
from transformer_lens import TransformerBridge
from transformer_lens.patching import get_act_patch_attn_head_out_all_pos

model = TransformerBridge.boot_transformers("house-gpt")
model.cfg.default_prepend_bos = False
text = "Tom {} saw a red ball. Anna gave the ball to Tom"
clean, other = (model.to_tokens(text.format(name)) for name in ("Hill", "Reed"))
names = clean[0, 1], other[0, 1]


def difference(logits):
    return logits[0, -1, names[1]] - logits[0, -1, names[0]]


logits, cache = model.run_with_cache(other)
start, end = difference(model(clean)), difference(logits)
patched = get_act_patch_attn_head_out_all_pos(model, clean, cache, difference)
shares = (patched - start) / (end - start)
px.imshow(shares.detach(), labels={"x": "head", "y": "layer"}).write_html("patching.html")
layer, head = divmod(shares.argmax().item(), model.cfg.n_heads)
print(f"L{layer}H{head} {shares.max():.2f}")
