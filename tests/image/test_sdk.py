"""Jobs started as a user starts them, with both SageMaker Python SDKs, in local mode."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.image.containers import NOTEBOOK, learned
from tests.image.local_mode import Sdk, run_with
from tests.opt_ml import Source, csv, parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

SETTINGS = {"objective": "reg:squarederror", "num_round": 20, "max_depth": 4}


@pytest.fixture(params=["v2", "v3"])
def sdk(request: pytest.FixtureRequest) -> Sdk:
    version: Sdk = request.param
    return version


@pytest.mark.parametrize(("write", "settings"), [(csv, NOTEBOOK), (parquet, SETTINGS)])
def test_the_sdk_gets_a_model_that_predicts(
    sdk: Sdk,
    write: Callable[[pd.DataFrame], Source],
    settings: dict[str, object],
    tmp_path: Path,
    table: pd.DataFrame,
) -> None:
    ran = run_with(sdk, tmp_path, settings, {"train": write(table), "validation": write(table[:500])})
    assert ran.code == 0, ran.log
    assert list(ran.archives["model.tar.gz"]) == ["xgboost-model"]
    assert learned(ran.outcome(), table)
    assert re.search(r"\[19\]\ttrain-rmse:[\d.]+\tvalidation-rmse:[\d.]+", ran.log), ran.log


def test_the_sdk_shows_the_reason_of_a_failure(sdk: Sdk, tmp_path: Path, table: pd.DataFrame) -> None:
    ran = run_with(sdk, tmp_path, {**SETTINGS, "max_dept": 3}, {"train": csv(table)})
    assert ran.code != 0
    assert "UserError: " in ran.log
    assert "max_depth" in ran.log
    assert not ran.archives.get("model.tar.gz")
