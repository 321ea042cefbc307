"""The engine: models and traces that all visitors share, bounded in bytes."""
