"""A loaded model: text in, trace out; its tokenizer; what it refuses."""
