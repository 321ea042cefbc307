"""Trains the shipped models: generators of data, one trainer for all shapes, gates, cards."""
