"""Errors that are the user's to mend."""


class UserError(Exception):
    """Bad input or a bad environment: one line that says what, where and what to do. The command exits with 2."""
