"""Notices: what in rows that can be trained on, or in a finished training, may still be a mistake.

While the matrices are built, an `Observer` looks at the batches of a channel (`columns`, `sketch`). What it
saw is merged over all workers, and `sentences` says what is remarkable.
"""

from smxgb.training.notices.observer import OBSERVED, Observed, Observer
from smxgb.training.notices.sentences import about_rows, about_training, about_watching_train

__all__ = ["OBSERVED", "Observed", "Observer", "about_rows", "about_training", "about_watching_train"]
