"""One iteration of OpenEvolve's own loop with a stub endpoint and an evaluator that does nothing.

Run in an environment that has ``openevolve``: ``python -m benchmarks.peer_openevolve 40`` prints milliseconds.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.stub_endpoint import PROGRAM, serving


def milliseconds(iterations: int) -> float:
    """Wall-clock time of one iteration: the difference between a long and a short run, so start-up cancels out."""
    short = max(iterations // 4, 1)
    return (_seconds(iterations + short) - _seconds(short)) / iterations * 1000


def _seconds(iterations: int) -> float:
    from openevolve import Config, run_evolution  # only in the environment of the peer
    from openevolve.config import LLMModelConfig

    logging.disable(logging.WARNING)
    with serving() as url, tempfile.TemporaryDirectory() as folder:
        evaluator = Path(folder, "evaluator.py")
        evaluator.write_text("def evaluate(path):\n    return {'combined_score': 0.5}\n")
        program = Path(folder, "program.py")
        program.write_text(PROGRAM.replace("{number}", "0"))
        config = Config(max_iterations=iterations, diff_based_evolution=False, log_level="ERROR")
        config.llm.api_base = url
        config.llm.models = [LLMModelConfig(name="stub", api_base=url, api_key="stub", weight=1.0)]
        config.evaluator.parallel_evaluations = 1
        config.evaluator.cascade_evaluation = False
        began = time.monotonic()
        run_evolution(program, evaluator, config=config, iterations=iterations, output_dir=folder)
        return time.monotonic() - began


if __name__ == "__main__":
    print(f"{milliseconds(int(sys.argv[1])):.1f}")
