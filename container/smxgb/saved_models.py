"""Saved models: how files of XGBoost begin, and how those are converted that it can't read."""

from __future__ import annotations

from smxgb.errors import UserError

PICKLE, BINARY = b"\x80", b"binf"
"""How a pickle of protocol 2 or later begins, and a binary model of XGBoost up to 1.7."""

JSON = b"{"
"""How a model in JSON or UBJSON begins."""

CONVERT = "with booster.save_model('xgboost-model.ubj')."
"""How a model is written so that this and later versions of XGBoost read it."""


def check_format(data: bytes | bytearray, source: str) -> None:
    """Check that a file is a model in JSON or UBJSON, as far as its first bytes tell.

    `source` is the file as messages show it. A pickle is never unpickled: it can run any code.

    Raises:
        UserError: If it is empty, an old or pickled model, or none at all.
    """
    if not data:
        raise UserError(f"{source} is empty: write the model {CONVERT}")
    if data[:1] == PICKLE:
        raise UserError(
            f"{source} is a pickled model, which is not opened, for a pickle can run any code. Unpickle it "
            f"where it was made, and write it {CONVERT}"
        )
    if data[:4] == BINARY or (data[:1] != JSON and b"gbtree" in data[:4096]):
        raise UserError(
            f"{source} is a binary model of XGBoost up to 1.7, which later versions can't read. Load it with "
            f"XGBoost 1.7, and write it {CONVERT}"
        )
    if data[:1] != JSON:
        raise not_a_model(source)


def not_a_model(source: str) -> UserError:
    """Return the error of a file that XGBoost can't load."""
    return UserError(f"{source} is no model of XGBoost, or is damaged: write the model again {CONVERT}")
