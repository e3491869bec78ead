"""Captions without small talk."""
