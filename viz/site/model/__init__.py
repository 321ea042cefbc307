"""A shipped model that runs in the reader's own browser, on any sentence, without a server.

`parts` makes what js/model.js needs of it: weights, tokenizer, and the words beside the numbers.
"""
