"""Any table: a job's model is that of plain XGBoost on what pandas reads, or the job is refused."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tests.opt_ml import write_opt_ml
from tests.random_tables import BOOSTING, ROUNDS, random_case, trees_of
from tests.work import work

if TYPE_CHECKING:
    from pathlib import Path

SHARE = 60
"""Tables of the share that every run of the tests has; `scripts/soak` has all 5,000."""
PORTION = 250


def differences(base: Path, seeds: range) -> tuple[list[str], int]:
    """Return the jobs whose model differs from the oracle's, one a line, and how many jobs made a model."""
    found, trained = [], 0
    for seed in seeds:
        case = random_case(seed)
        for kind, source in case.sources.items():
            folder = base / f"{seed}-{kind}"
            settings = {"num_round": ROUNDS, **BOOSTING, **case.settings}
            done = work(write_opt_ml(folder, hyperparameters=settings, channels={"train": source}))
            shutil.rmtree(folder)
            if done.code == 2:
                continue
            trained += 1
            if case.may_be_row and "its first record (" in done.log:
                continue
            if done.code or case.trees is None or trees_of(done.booster()) != case.trees:
                found.append(f"seed {seed}, {kind}: exit code {done.code}, {case.settings}; {case.reason}")
    return found, trained


def test_a_model_is_that_of_plain_xgboost_on_what_pandas_reads(tmp_path: Path) -> None:
    found, trained = differences(tmp_path, range(SHARE))
    assert found == []
    assert trained > SHARE


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 5_000, PORTION))
def test_a_model_is_that_of_plain_xgboost_on_any_table(tmp_path: Path, first: int) -> None:
    found, trained = differences(tmp_path, range(first, first + PORTION))
    assert found == []
    assert trained > PORTION
