from pathlib import Path

import pandas as pd
import torch
from transformer_lens import TransformerBridge

lines = [f"Tom saw {name}. {name} gave Tom a ball." for name in ("Anna", "Sam", "Lily", "Ben")]
Path("corpus.txt").write_text("\n".join(lines * 10))
model = TransformerBridge.boot_transformers("stories")
model.cfg.default_prepend_bos = False
total, count, examples = torch.zeros(model.cfg.n_layers, model.cfg.n_heads), 0, []
for line in Path("corpus.txt").read_text().splitlines():
    _, cache = model.run_with_cache(line)
    weights = cache.stack_activation("pattern")[:, 0]
    before = weights.diagonal(-1, 2, 3)  # (layer, head, token after the first)
    total, count = total + before.sum(-1), count + before.shape[-1]
    words, one = model.to_str_tokens(line), weights[0, 1]
    for query in range(1, len(words)):
        key = one[query].argmax()
        examples.append((words[query], words[key], one[query, key].item()))
previous = total / count
rows = [
    (layer, head, previous[layer, head].item())
    for layer in range(model.cfg.n_layers)
    for head in range(model.cfg.n_heads)
]
table = pd.DataFrame(rows, columns=["layer", "head", "previous"])
table = table.sort_values("previous", ascending=False)
table.to_csv("heads.csv", index=False)
print(table.head(3).round(2).to_string(index=False))
frame = pd.DataFrame(examples, columns=["query_token", "key_token", "weight"])
print(frame.nlargest(2, "weight"))
