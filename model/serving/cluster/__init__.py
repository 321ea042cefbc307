"""Models on a Ray cluster: each is an actor with its own engine; pages ask it for small answers."""
