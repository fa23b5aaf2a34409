"""The errors that a user can cause.

Each message is one line: what was found, where, and what to do. The command line prints it and exits with
code 2; anything else that escapes is a fault of this package and keeps its traceback.
"""


class LoratrialError(Exception):
    """Base of every error that a user can cause; `str(error)` is the one line to print."""


class TrialFileError(LoratrialError):
    """The trial file says something that is unknown, of the wrong type, or impossible."""


class DataError(LoratrialError):
    """A dataset is missing, incomplete, or not what its hashes say."""


class ModelError(LoratrialError):
    """A model cannot be found, fetched, stored or loaded."""


class RunFolderError(LoratrialError):
    """A run folder is locked, incomplete, of another trial, or of an unknown format."""


class ScorerError(LoratrialError):
    """A task failed while reading or scoring an output: an error that stops the run, never a reward of 0."""
