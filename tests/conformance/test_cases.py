"""What users of such containers run into, by their public bug reports."""

from __future__ import annotations

import decimal
import json
import pathlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb
from sklearn.datasets import load_diabetes
from tests.opt_ml import Source, csv, parquet, run_train, write_opt_ml
from tests.work import work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from tests.opt_ml import Outcome


def table() -> pd.DataFrame:
    frame = load_diabetes(as_frame=True).frame
    return frame[["target", *frame.columns[:-1]]].astype(np.float32)


def train(
    base: Path,
    settings: dict[str, object],
    run: Callable[[Path], Outcome] = work,
    **channels: Source | pd.DataFrame,
) -> Outcome:
    write_opt_ml(base, hyperparameters={"num_round": 5, **settings}, channels=channels)
    done = run(base)
    assert done.code == 0, done.log
    return done


@pytest.mark.parametrize("form", [lambda frame: csv(frame, header=True), parquet])
def test_the_label_may_stand_anywhere_and_an_id_be_left_out(tmp_path: Path, form: object) -> None:
    frame = table()
    usual = train(tmp_path / "a", {}, train=form(frame[:300]), validation=form(frame[300:]))  # type: ignore[operator]
    moved = frame.iloc[:, [*range(1, 11), 0]]
    moved.insert(0, "id", [f"row {index}" for index in range(len(moved))])
    settings: dict[str, object] = {"label_column": -1, "drop_columns": "id"}
    other = train(tmp_path / "b", settings, train=form(moved[:300]), validation=form(moved[300:]))  # type: ignore[operator]
    assert usual.output_data.keys() == other.output_data.keys()
    assert usual.model == other.model


def test_files_without_a_content_type_are_told_by_what_they_hold(tmp_path: Path) -> None:
    rows = table()
    plain = Source({"part-0": next(iter(csv(rows).files.values()))}, None)
    packed = Source({"part-0": next(iter(parquet(rows).files.values()))}, None)
    done = train(tmp_path, {}, train=plain, validation=packed)
    assert "csv (by the first bytes of part-0)" in done.log
    assert "parquet (by the first bytes of part-0)" in done.log


def test_all_folders_are_read_and_stray_files_are_not(tmp_path: Path) -> None:
    rows = table()
    files = {
        "a/1.csv": rows[:100].to_csv(index=False, header=False).encode(),
        "b/deep/1.csv": rows[100:].to_csv(index=False, header=False).encode(),
        "_SUCCESS": b"",
        "a/.1.csv.crc": b"crc",
        ".ipynb_checkpoints/1.csv": b"not,data\n",
        "manifest.json": b"[]",
        "c/part-1.csv": b"",
    }
    done = train(tmp_path / "a", {}, train=Source(files, "text/csv"))
    assert f"Train matrix has {len(rows)} rows and 10 columns" in done.log
    for skipped in (
        "_SUCCESS (empty)",
        "a/.1.csv.crc",
        ".ipynb_checkpoints/",
        "manifest.json",
        "c/part-1.csv (empty)",
    ):
        assert skipped in done.log
    assert done.model == train(tmp_path / "b", {}, train=rows).model


def test_rows_without_a_label_can_be_left_out(tmp_path: Path) -> None:
    rows = table()
    rows.iloc[5:25, 0] = np.nan
    done = train(tmp_path / "a", {"invalid_label": "drop"}, train=rows)
    assert "Channel train: dropped 20 rows without a valid label." in done.log
    assert done.model == train(tmp_path / "b", {}, train=rows.dropna()).model


def test_infinite_values_can_count_as_missing(tmp_path: Path) -> None:
    rows = table()
    missing = rows.copy()
    rows.iloc[:30, 3] = np.inf
    missing.iloc[:30, 3] = np.nan
    done = train(tmp_path / "a", {"infinity": "missing"}, train=rows)
    assert "Channel train: 30 infinite values count as missing: column 3 30." in done.log
    models = done.booster(), train(tmp_path / "b", {}, train=missing).booster()
    for model in models:
        model.set_attr(smxgb=None)  # how infinite values were read
    assert models[0].save_raw() == models[1].save_raw()


def test_columns_of_every_numeric_type_train_as_floats_do(tmp_path: Path) -> None:
    rows = table()
    rows["sex"] = (rows["sex"] > 0).astype(np.float32)
    rows["age"] = np.round(rows["age"] * 100) + 0  # integers know no -0.0
    rows.loc[::9, "age"] = np.nan
    rows["bp"] = np.round(rows["bp"] * 100) + 0
    typed = rows.assign(
        age=rows["age"].astype("Int64"),
        sex=rows["sex"] > 0,
        bp=[decimal.Decimal(int(value)) for value in rows["bp"]],
        bmi=rows["bmi"].astype("Float64"),
        s1=rows["s1"].astype("float32[pyarrow]"),
    )
    kept = typed[typed["s6"] > -1]
    (tmp_path / "saved").mkdir()
    kept.to_parquet(tmp_path / "saved" / "a.parquet", index=True)
    source = Source({"a.parquet": (tmp_path / "saved" / "a.parquet").read_bytes()}, "application/x-parquet")
    done = train(tmp_path / "a", {}, train=source)
    assert done.model == train(tmp_path / "b", {}, train=parquet(rows)).model


def test_settings_in_quotes_give_the_model_of_plain_ones(tmp_path: Path) -> None:
    plain: dict[str, object] = {
        "objective": "reg:squarederror",
        "max_depth": 3,
        "eval_metric": "rmse,mae",
        "seed": 4,
    }
    quoted: dict[str, object] = {name: json.dumps(str(value)) for name, value in plain.items()}
    one, other = (train(tmp_path / name, s, train=table()) for name, s in (("a", plain), ("b", quoted)))
    assert one.model == other.model


def test_early_stopping_says_what_it_watches_and_cuts_at_the_best_round(tmp_path: Path) -> None:
    rows = table()
    settings: dict[str, object] = {
        "num_round": 100,
        "eta": 0.9,
        "early_stopping_rounds": 3,
        "eval_metric": "mae,mape",
    }
    done = train(tmp_path, settings, train=rows[:300], validation=rows[300:])
    assert "Early stopping watches validation-mape (lower is better)" in done.log
    report = json.loads(done.output_data["metrics.json"])
    values = report["history"]["validation"]["mape"]
    assert report["best_round"] == int(np.argmin(values)) < 99
    label = rows["target"][300:].to_numpy()
    error = np.mean(np.abs(label - done.predict(rows[300:].iloc[:, 1:])) / label)
    assert error == pytest.approx(min(values), rel=1e-4)


def test_the_log_begins_with_versions_and_ends_with_a_summary(tmp_path: Path) -> None:
    done = train(tmp_path, {}, run_train, train=table())
    first, *_, phases, last = done.log.splitlines()
    versions = json.loads(done.output_data["metrics.json"])["versions"]
    assert first == "Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + "."
    assert set(versions) == {"smxgb", "xgboost", "pyarrow", "numpy", "distributed", "python"}
    for phase in ("load", "matrix", "train", "save"):
        assert f"{phase} " in phases
    assert phases.startswith("Phases: ")
    assert "peak memory" in phases
    assert last.startswith("Trained 5 rounds (train-rmse:")
    assert last.endswith(f"Model: {tmp_path}/model/xgboost-model")


def test_the_usual_spellings_of_channels_are_taken_and_said(tmp_path: Path) -> None:
    done = train(tmp_path, {}, training=table(), val=table())
    assert "Channel 'training' is taken as 'train'." in done.log
    assert "Channel 'val' is taken as 'validation'." in done.log
    assert "validation-rmse" in done.log


def test_no_configuration_but_the_settings_is_needed(tmp_path: Path) -> None:
    write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 3},
        channels={"train": table()},
        inputdataconfig=None,
        resourceconfig=None,
    )
    done = run_train(tmp_path, environment={"SM_HP_NUM_ROUND": "9", "SM_HPS": '{"num_round": 9}'})
    assert done.code == 0, done.log
    assert done.booster().num_boosted_rounds() == 3


@pytest.mark.parametrize(("settings", "code"), [({}, 0), ({"objective": "reg:gamma"}, 2)])
def test_a_job_leaves_nothing_but_its_results(tmp_path: Path, settings: dict[str, object], code: int) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    rows = table().assign(target=lambda frame: frame["target"] - 25)
    write_opt_ml(
        tmp_path / "ml",
        hyperparameters={"num_round": 3, "tree_method": "approx", **settings},
        channels={"train": rows},
    )
    before = {path for path in (tmp_path / "ml").rglob("*") if path.is_file()}
    done = run_train(tmp_path / "ml", environment={"TMPDIR": str(temporary)})
    assert done.code == code, done.log
    assert not list(temporary.iterdir())
    written = {path for path in (tmp_path / "ml").rglob("*") if path.is_file()} - before
    results = {"model/xgboost-model", "output/data/metrics.json", "output/data/feature_importance.csv"}
    assert {str(path.relative_to(tmp_path / "ml")) for path in written} == (
        {"output/failure"} if code else results
    )


def test_the_report_says_how_to_load_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = train(tmp_path, {}, train=table())
    report = json.loads(done.output_data["metrics.json"])
    assert set(done.models) == {"xgboost-model"}
    monkeypatch.chdir(tmp_path / "model")
    known = {"xgboost": xgb, "pathlib": pathlib}
    loaded = eval(report["load_the_model"], known)  # noqa: S307 - what a reader would paste
    assert loaded.num_features() == report["feature_count"] == 10
