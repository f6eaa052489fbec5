"""The exceptions of this package; `Error` is the base of all of them."""

__all__ = ["DataError", "Error", "ScenarioError"]


class Error(Exception):
    """Something could not be done; the message says what, and what would be right."""


class ScenarioError(Error, ValueError):
    """A scenario cannot be meant, or is more than can be run.

    The message names the file, the line and the key.
    """


class DataError(Error, ValueError):
    """Numbers or the contents of a file cannot be meant: wrong shapes, NaN, nothing at all.

    The message names what it is about, and what would be right.
    """
