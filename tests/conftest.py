"""What tests of models, learning and trials share: policies on random models, and one finished small run.

Anything that needs torch is imported inside, so that the other tests start at once.
"""

import pytest


@pytest.fixture(scope="session")
def make_policy():
    """`small_models.make_policy`, for tests that need no more of that module."""
    from small_models import make_policy

    return make_policy


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The run folder of the trial of `letters_task`, carried to its end; not to be changed."""
    from letters_task import letters_trial

    from loratrial.progress import SilentProgress
    from loratrial.trial.run import run_trial

    folder = tmp_path_factory.mktemp("finished") / "run"
    run_trial(letters_trial(), folder, SilentProgress(), "test")
    return folder
