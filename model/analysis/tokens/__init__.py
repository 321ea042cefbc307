"""From the table of tokens to the next token."""
