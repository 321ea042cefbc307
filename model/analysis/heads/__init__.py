"""What a head looks at, what it writes, and what it is needed for."""
