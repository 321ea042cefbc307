"""The guided tour: from tokens to prediction on one sentence, each step done on the live control."""
