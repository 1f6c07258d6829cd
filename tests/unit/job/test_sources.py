from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smxgb.environment import Paths
from smxgb.errors import UserError
from smxgb.job.job import load_job
from smxgb.job.sources import SAGEMAKER, Sources, read_hyperparameters

if TYPE_CHECKING:
    from pathlib import Path


def test_settings_and_rows_come_from_where_the_sources_say(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"num_round": "7"}')
    data = tmp_path / "rows"
    data.mkdir()
    (data / "a.csv").write_text("1,2\\n")
    job = load_job({"SAGEMAKER_BASE_DIR": str(tmp_path)}, Sources(settings, {"train": data}))
    assert job.parameters.settings.num_round == 7
    assert [file.path.name for file in job.channels.train.files] == ["a.csv"]


def test_hyperparameters_of_sagemakers_own_file_may_be_missing_and_those_of_a_named_file_may_not(
    tmp_path: Path,
) -> None:
    assert read_hyperparameters(Paths(tmp_path), SAGEMAKER) == {}
    with pytest.raises(UserError, match=r"there is no file .*/mine\.json: give the path"):
        read_hyperparameters(Paths(tmp_path), Sources(tmp_path / "mine.json"))
