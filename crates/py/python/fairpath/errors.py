"""The exceptions of this package; `Error` is the base of all of them."""

__all__ = ["Error", "ScenarioError"]


class Error(Exception):
    """Something could not be done; the message says what, and what would be right."""


class ScenarioError(Error, ValueError):
    """A scenario cannot be meant, or is more than can be run.

    The message names the file, the line and the key.
    """
