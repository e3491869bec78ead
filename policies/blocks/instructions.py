"""Instructions for the answer model."""

from __future__ import annotations

STRUCTURED = """\
Answer from the records only.
1. Check that the action asked about agrees with the EVENT of a record.
2. Where the question joins people and a place, require both in the same record.
3. For a question about what was said, prefer DIALOGUE.
4. For a habit, add up evidence that repeats over several records.
5. Never choose by how often something is mentioned overall.
Reply with one letter."""
"""For five-field records: the five obligations of the structured fallback. They are given, their wording is not."""

VERIFY = (
    "Current text answer is {answer}. Inspect frames. "
    "Maintain {answer} unless visual evidence unambiguously proves an alternative."
)
"""The conservative visual verification prompt, given word for word; ``{answer}`` stands for the text answer."""
