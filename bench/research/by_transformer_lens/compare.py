import numpy as np
from transformer_lens import TransformerBridge

model = TransformerBridge.boot_transformers("house-gpt")
model.cfg.default_prepend_bos = False
logits, cache = model.run_with_cache("The cat sat on the mat")
np.savez("theirs.npz", **{name: array.numpy(force=True) for name, array in cache.items()})
