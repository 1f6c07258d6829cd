"""Settings of the whole suite."""

from hypothesis import settings

# No test is timed: a shared machine is slow at any moment.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
