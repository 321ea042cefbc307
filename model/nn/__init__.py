"""The network itself, from config to logits, and the one `attend`. A newcomer starts here."""
