import plotly.express as px
from transformer_lens import TransformerBridge

model = TransformerBridge.boot_transformers("house-gpt")
model.cfg.default_prepend_bos = False
tokens = model.to_tokens("Tom Hill saw a red ball. Anna gave the ball to Tom")
logits, cache = model.run_with_cache(tokens)
weights = cache.stack_activation("pattern")[:, 0]  # (layer, head, query, key)
looked_for = (tokens[0][:, None] == tokens[0]).tril(-1).roll(1, 1)  # after an earlier same token
rows = looked_for.any(1)
scores = (weights * looked_for).sum(-1)[..., rows].mean(-1)
px.imshow(scores.detach(), labels={"x": "head", "y": "layer"}).write_html("induction.html")

layer, head = divmod(weights[:, :, 12, 1].argmax().item(), model.cfg.n_heads)


def switch_off(z, hook):
    z[:, :, head] = 0
    return z


without = model.run_with_hooks(tokens, fwd_hooks=[(f"blocks.{layer}.attn.hook_z", switch_off)])
hill = tokens[0, 1]
lost = logits[0, -1, hill] - without[0, -1, hill]
print(f"L{layer}H{head}", f"{weights[layer, head, 12, 1]:.2f}", f"{lost:.2f}")
