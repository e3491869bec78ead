"""The meta layer: command line, loop, agents, gate, evaluation, models, lineage."""

__version__ = "0.1.0"
