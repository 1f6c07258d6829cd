"""Jobs that begin again with the checkpoints of an earlier one, as SageMaker starts a Spot job again."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from typing import TYPE_CHECKING

import pytest
import xgboost as xgb
from sklearn.datasets import load_breast_cancer
from tests.opt_ml import write_opt_ml
from tests.work import dry_run, work

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd
    from tests.opt_ml import Outcome

SETTINGS: Mapping[str, object] = {
    "objective": "binary:logistic",
    "max_depth": 3,
    "subsample": 0.7,
    "colsample_bytree": 0.6,
    "seed": 3,
    "nthread": 1,
}


def cancer() -> pd.DataFrame:
    rows = load_breast_cancer(as_frame=True).frame
    return rows[["target", *rows.columns.drop("target")]].sample(frac=1, random_state=0)


def train(base: Path, folder: Path, rows: pd.DataFrame | None = None, **settings: object) -> Outcome:
    """Run a job whose checkpoints are in `folder`; its own folders are new."""
    shutil.rmtree(base, ignore_errors=True)
    rows = cancer() if rows is None else rows
    write_opt_ml(
        base,
        hyperparameters={**SETTINGS, **settings},
        channels={"train": rows[:400], "validation": rows[400:]},
        checkpointconfig={"LocalPath": str(folder)},
    )
    return work(base)


def lines(outcome: Outcome) -> list[str]:
    return re.findall(r"^\[\d+\]\t.*$", outcome.log, re.MULTILINE)


def names(folder: Path) -> list[int]:
    return [int(path.name.split("-")[2].partition(".")[0]) for path in sorted(folder.iterdir())]


@pytest.mark.parametrize("kind", [{}, {"booster": "dart", "rate_drop": 0.3}, {"early_stopping_rounds": 30}])
def test_ten_rounds_and_then_twenty_in_the_same_folders_are_twenty_in_one_go(
    tmp_path: Path, kind: Mapping[str, object]
) -> None:
    first = train(tmp_path / "job", tmp_path / "points", num_round=10, **kind)
    second = train(tmp_path / "job", tmp_path / "points", num_round=20, **kind)
    whole = train(tmp_path / "whole", tmp_path / "other", num_round=20, **kind)
    assert [len(lines(outcome)) for outcome in (first, second, whole)] == [10, 10, 20]
    assert lines(first) + lines(second) == lines(whole)
    assert second.model == whole.model is not None
    reports = [json.loads(outcome.output_data["metrics.json"]) for outcome in (second, whole)]
    assert reports[0]["history"] == reports[1]["history"]
    assert reports[0]["best_round"] == reports[1]["best_round"]


def test_a_job_that_is_done_writes_its_model_and_no_line_of_a_round(tmp_path: Path) -> None:
    first = train(tmp_path / "job", tmp_path / "points", num_round=10)
    again = train(tmp_path / "job", tmp_path / "points", num_round=10)
    assert again.model == first.model is not None
    assert not lines(again)
    assert "All 10 rounds are done: the model is written." in again.log


def test_a_job_that_stopped_early_stays_ended_when_it_may_train_longer(tmp_path: Path) -> None:
    settings = {"early_stopping_rounds": 3, "eta": 1, "max_depth": 6}
    first = train(tmp_path / "job", tmp_path / "points", num_round=60, **settings)
    again = train(tmp_path / "job", tmp_path / "points", num_round=200, **settings)
    assert len(lines(first)) < 60
    assert again.model == first.model is not None
    assert not lines(again)


def test_the_newest_checkpoint_is_that_of_the_most_rounds_whatever_its_digits(tmp_path: Path) -> None:
    settings = {"max_depth": 1, "checkpoint_interval": 1, "eval_train": "false"}
    train(tmp_path / "job", tmp_path / "points", num_round=100, checkpoint_keep=100, **settings)
    assert names(tmp_path / "points") == list(range(1, 101))
    for path in (tmp_path / "points").iterdir():
        if int(path.name.split("-")[2].partition(".")[0]) not in {9, 10, 99}:
            path.unlink()
    again = train(tmp_path / "job", tmp_path / "points", num_round=101, **settings)
    assert "99 rounds are done" in again.log
    assert lines(again)[0].startswith("[99]\t")


def test_the_newest_are_kept_and_an_interval_is_kept_to(tmp_path: Path) -> None:
    train(tmp_path / "job", tmp_path / "points", num_round=31, checkpoint_interval=5)
    assert names(tmp_path / "points") == [15, 20, 25, 30, 31]


def test_without_an_interval_the_first_round_and_the_last_are_kept_at_least(tmp_path: Path) -> None:
    train(tmp_path / "job", tmp_path / "points", num_round=3)
    found = names(tmp_path / "points")
    assert found[0] == 1
    assert found[-1] == 3


def test_broken_empty_and_foreign_files_are_passed_over_with_a_line_each(tmp_path: Path) -> None:
    points = tmp_path / "points"
    whole = train(tmp_path / "job", points, num_round=6, checkpoint_interval=2)
    *_, older, newest = sorted(points.iterdir())
    newest.write_bytes(newest.read_bytes()[:-10])
    older.write_bytes(b"")
    (points / "notes.txt").write_text("mine")
    (points / "sub").mkdir()
    (points / ".sagemaker-uploading").write_text("")
    (points / ".smxgb-smxgb-00000000-00000009.checkpoint").write_text("half")
    again = train(tmp_path / "job", points, num_round=6)
    assert again.model == whole.model is not None
    assert len(lines(again)) == 4
    assert f"{newest} is passed over: it is damaged or incomplete" in again.log
    assert f"{older} is passed over: it is empty." in again.log
    assert "notes.txt in the checkpoint folder is passed over" in again.log
    assert "sub/ in the checkpoint folder is passed over" in again.log
    assert "sagemaker-uploading" not in again.log
    assert not list(points.glob(".smxgb-*"))


@pytest.mark.parametrize(
    ("settings", "rows", "named"),
    [
        ({"eta": 0.1}, cancer(), "eta was not set and is 0.1"),
        ({"max_depth": 4}, cancer(), "max_depth was 3 and is 4"),
        ({"objective": "binary:hinge"}, cancer(), 'objective was "binary:logistic" and is "binary:hinge"'),
        ({}, cancer().iloc[:, :-1], "features was 30 and is 29"),
        ({}, cancer().iloc[10:], "rows of validation was 169 and is 159"),
    ],
)
def test_a_checkpoint_of_a_job_that_differs_is_refused_and_kept(
    tmp_path: Path, settings: Mapping[str, object], rows: pd.DataFrame, named: str
) -> None:
    points = tmp_path / "points"
    train(tmp_path / "job", points, num_round=3, checkpoint_keep=1)
    kept = {path: path.read_bytes() for path in points.iterdir()}
    refused = train(tmp_path / "job", points, rows, num_round=3, **settings)
    assert refused.code == 2
    assert named in str(refused.failure)
    assert "set checkpoint_mismatch=restart to begin anew" in str(refused.failure)
    anew = train(tmp_path / "job", points, rows, num_round=3, checkpoint_mismatch="restart", **settings)
    assert anew.code == 0, anew.log
    assert len(lines(anew)) == 3
    assert named in anew.log
    assert {path: path.read_bytes() for path in points.iterdir() if path in kept} == kept


def test_the_job_that_began_anew_goes_on_from_its_own_checkpoints(tmp_path: Path) -> None:
    train(tmp_path / "job", tmp_path / "points", num_round=9)
    settings = {"eta": 0.1, "checkpoint_mismatch": "restart"}
    train(tmp_path / "job", tmp_path / "points", num_round=3, **settings)
    again = train(tmp_path / "job", tmp_path / "points", num_round=5, **settings)
    assert len(lines(again)) == 2


def test_what_does_not_shape_the_model_may_change(tmp_path: Path) -> None:
    train(tmp_path / "job", tmp_path / "points", num_round=3)
    changed = {"eval_metric": "auc", "nthread": 2, "checkpoint_keep": 2}
    again = train(tmp_path / "job", tmp_path / "points", num_round=5, **changed)
    assert len(lines(again)) == 2
    history = json.loads(again.output_data["metrics.json"])["history"]
    assert history["train"]["auc"][:3] == [None, None, None]
    assert history["train"]["auc"][3] is not None


def test_a_ranking_without_saved_biases_begins_anew_with_the_same_model(tmp_path: Path) -> None:
    rows = cancer().round(3)
    rows.insert(1, "query", sorted(index // 20 for index in range(len(rows))))
    settings = {"objective": "rank:ndcg", "lambdarank_unbiased": "true", "group_column": 1}
    train(tmp_path / "job", tmp_path / "points", rows, num_round=3, **settings)
    again = train(tmp_path / "job", tmp_path / "points", rows, num_round=5, **settings)
    whole = train(tmp_path / "whole", tmp_path / "other", rows, num_round=5, **settings)
    assert "it begins anew, and gives the same model" in again.log
    assert len(lines(again)) == 5
    assert again.model == whole.model is not None


def test_a_folder_that_cannot_be_written_costs_lines_of_the_log_and_not_the_job(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = train(tmp_path / "job", tmp_path / "file" / "points", num_round=3, checkpoint_interval=1)
    assert done.code == 0, done.log
    assert done.log.count("No checkpoint could be written in") == 1


def test_a_path_that_is_none_is_refused(tmp_path: Path) -> None:
    write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 1},
        channels={"train": cancer()},
        checkpointconfig={"LocalPath": "checkpoints"},
    )
    assert 'LocalPath is "checkpoints": it must be the full path of a folder' in dry_run(tmp_path).stderr


def aws(folder: Path, name: str, rounds: int, objective: str = "binary:logistic") -> None:
    """Write what AWS's images write after some rounds of XGBoost."""
    rows = cancer()[:400]
    matrix = xgb.QuantileDMatrix(rows.iloc[:, 1:].to_numpy("float32"), rows["target"])
    booster = xgb.train({**SETTINGS, "objective": objective, "seed_per_iteration": 1}, matrix, rounds)
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(booster.save_raw("ubj"))


@pytest.mark.parametrize("form", ["xgboost-checkpoint.{}", "xgboost-checkpoint_{}.ubj"])
def test_checkpoints_of_awss_images_are_models_of_one_round_more_than_their_number(
    tmp_path: Path, form: str
) -> None:
    points = tmp_path / "points"
    aws(points, form.format(5), 6)
    aws(points, form.format(10), 11)
    aws(points, form.format(12), 9)
    aws(points, form.format(13), 14, "binary:logitraw")
    (points / form.format(14)).write_bytes(pickle.dumps({}))
    (points / form.format(15)).write_bytes(b"")
    done = train(tmp_path / "job", points, num_round=15)
    whole = train(tmp_path / "whole", tmp_path / "other", num_round=15)
    assert lines(done) == lines(whole)[11:]
    assert done.model == whole.model is not None
    for number, reason in (
        (12, "the rounds of its model: 9, not 13"),
        (13, "the objective of its model"),
        (14, "pickled"),
        (15, "empty"),
    ):
        assert re.search(rf"{re.escape(form.format(number))} is passed over: .*{reason}", done.log), done.log


def check(base: Path, folder: Path, **settings: object) -> str:
    write_opt_ml(
        base,
        hyperparameters={**SETTINGS, **settings},
        channels={"train": cancer()[:400], "validation": cancer()[400:]},
        checkpointconfig={"LocalPath": str(folder)},
    )
    return dry_run(base).stdout


def test_a_check_says_how_often_checkpoints_come_and_what_would_be_gone_on_from(tmp_path: Path) -> None:
    points = tmp_path / "points"
    assert f"Checkpoints: in {points}, as often as 1 % of the time allows" in check(
        tmp_path / "a", points, num_round=3
    )
    assert "would go on" not in check(tmp_path / "b", points, num_round=3)
    train(tmp_path / "job", points, num_round=3)
    said = check(tmp_path / "c", points, num_round=5, checkpoint_interval=4)
    assert f"Checkpoints: in {points}, every 4 rounds, and at the end." in said
    assert "3.checkpoint: 3 rounds are done." in said
    assert "is of a job that differs: eta was not set and is 0.5." in check(
        tmp_path / "d", points, num_round=5, eta=0.5
    )
