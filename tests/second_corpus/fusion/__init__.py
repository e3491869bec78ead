"""Fused rankings."""
