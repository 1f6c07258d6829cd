"""`smxgb check` as a process of its own: it says what `train` would fail with, before it is started."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.mistakes import NAMED, ROWS, Mistake, assert_fails, csv, parquet, table
from tests.opt_ml import write_opt_ml

if TYPE_CHECKING:
    from pathlib import Path

NO_ROWS = table({"label": [], "a": []})


def check(base: Path, *arguments: str) -> tuple[int, list[str], list[str]]:
    """Return exit code, log and errors."""
    done = subprocess.run(
        [sys.executable, "-m", "smxgb", "check", *arguments],
        env=os.environ | {"SAGEMAKER_BASE_DIR": str(base), "NVIDIA_VISIBLE_DEVICES": "none"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


SAME = {
    "column names and no row": Mistake(
        "UserError: channel train has no rows, its files hold column names at most: check its S3 address "
        "and what wrote the files.",
        train=b"label,a,b\n",
    ),
    "a Parquet file without rows": Mistake(
        "UserError: channel train has no rows, its files hold column names at most: check its S3 address "
        "and what wrote the files.",
        train=parquet(NO_ROWS),
    ),
    "a validation channel with column names and no row": Mistake(
        "UserError: channel validation has no rows, its files hold column names at most: check its S3 "
        "address and what wrote the files.",
        train=NAMED,
        validation=b"label,age,height\n",
    ),
    "no row with a label": Mistake(
        "UserError: channel train: all 2 rows were left out, for none has a number as its label "
        "(invalid_label=drop): check label_column.",
        {"invalid_label": "drop"},
        b"label,a,b\nx,1,2\ny,2,3\n",
    ),
    "a spool folder that is not there": Mistake(
        "UserError: spool_dir='/no/such/folder' is no folder that can be written: give one that exists, "
        "or leave it out.",
        {"spool_dir": "/no/such/folder"},
    ),
    "labels, constraints and settings": Mistake(
        "UserError: 2 mistakes. 1. channel train has the labels 0, 1, but for objective=reg:gamma a label "
        "is a number > 0: recode the labels, or choose another objective.",
        {"objective": "reg:gamma", "monotone_constraints": '{"weight": 1}'},
        NAMED,
    ),
    "more columns than a table can have": Mistake(
        "UserError: train/0.csv has 100,001 columns, and a table can have 100,000 at most: check that each "
        "record ends with a line end.",
        train=csv(b",".join([b"1"] * 100_001)),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_wrong_is_said_by_the_check_in_the_words_of_the_job(name: str, tmp_path: Path) -> None:
    mistake = SAME[name]
    assert_fails(mistake, tmp_path)
    code, _, errors = check(tmp_path)
    assert (code, errors[0]) == (2, mistake.says)


def test_a_job_that_is_in_order_is_said_to_be(tmp_path: Path) -> None:
    settings = {"num_round": 2, "objective": "multi:softprob"}
    write_opt_ml(tmp_path, hyperparameters=settings, channels={"train": NAMED})
    code, log, errors = check(tmp_path)
    assert (code, errors) == (0, [])
    assert "Channel train: about 4 rows and 2 columns." in log
    assert "Classes: 2, counted from the labels, the largest of which is one less." in log
    assert log[-1].startswith("Nothing was found that would stop the job.")
    assert not list((tmp_path / "model").iterdir())


def test_a_file_of_hyperparameters_that_is_not_there_is_named(tmp_path: Path) -> None:
    write_opt_ml(tmp_path, hyperparameters={"num_round": 2}, channels={"train": ROWS})
    code, _, errors = check(tmp_path, "--hyperparameters", "/no/such.json")
    assert (code, errors) == (
        2,
        ["UserError: there is no file /no/such.json: name one that holds the job's hyperparameters as JSON."],
    )


def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    file = write_opt_ml(tmp_path, hyperparameters={"num_round": 2}, channels={"train": ROWS}) / "a.csv"
    file.write_bytes(ROWS)
    code, _, errors = check(tmp_path, "--train", str(file))
    assert code == 2
    assert len(errors) == 1
    assert f"{file} is a file; it must be a folder" in errors[0]


@pytest.mark.parametrize("target", ["/no/such/file", "data.csv"])
def test_a_link_that_leads_nowhere_is_one_sentence(tmp_path: Path, target: str) -> None:
    write_opt_ml(tmp_path, hyperparameters={"num_round": 2}, channels={"train": ROWS})
    data = tmp_path / "input/data/train/data.csv"
    data.unlink()
    data.symlink_to(target)
    code, _, errors = check(tmp_path)
    assert code == 2
    assert len(errors) == 1
    assert f"data.csv is a link to {target}, which is not there" in errors[0]
