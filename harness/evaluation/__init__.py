"""Measuring a policy on a split: services, executor, gold, metrics."""
