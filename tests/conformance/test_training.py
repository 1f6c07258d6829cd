"""Whole jobs on one host, each a process of its own on an /opt/ml folder of its own."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.datasets import load_breast_cancer, load_diabetes
from tests.opt_ml import Outcome, Source, csv, parquet, run_train, write_opt_ml
from tests.work import work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

NOTEBOOK = {
    "objective": "reg:linear",
    "silent": 0,
    "num_round": 50,
    "max_depth": 5,
    "eta": 0.2,
    "gamma": 4,
    "min_child_weight": 6,
    "subsample": 0.7,
}
"""What AWS's own example notebooks set."""


def diabetes() -> pd.DataFrame:
    table = load_diabetes(as_frame=True).frame
    return table[["target", *table.columns[:-1]]].astype(np.float32)


def cancer() -> pd.DataFrame:
    table = load_breast_cancer(as_frame=True).frame
    return table[["target", *table.columns[:-1]]].astype(np.float32)


def train(
    base: Path,
    hyperparameters: Mapping[str, object],
    run: Callable[[Path], Outcome] = work,
    **channels: Source | pd.DataFrame,
) -> Outcome:
    write_opt_ml(base, hyperparameters=hyperparameters, channels=channels)
    return run(base)


def plain_model(table: pd.DataFrame, parameters: dict[str, object], rounds: int) -> xgb.Booster:
    matrix = xgb.QuantileDMatrix(table.iloc[:, 1:].to_numpy(), table.iloc[:, 0].to_numpy())
    return xgb.train({"seed_per_iteration": 1, **parameters}, matrix, rounds)


def test_the_settings_of_aws_notebooks_train_unchanged(tmp_path: Path) -> None:
    table = diabetes()
    done = train(tmp_path, NOTEBOOK, run_train, train=table[:300], validation=table[300:])
    assert done.code == 0, done.log
    assert done.failure is None
    assert set(done.models) == {"xgboost-model"}
    lines = [line for line in done.log.splitlines() if re.match(r"\[\d+\]\t", line)]
    assert len(lines) == 50
    form = re.compile(r"\[\d+\]\ttrain-rmse:\d+\.\d+\tvalidation-rmse:\d+\.\d+")
    assert all(form.fullmatch(line) for line in lines)
    assert "Train matrix has 300 rows and 10 columns" in done.log
    assert "Validation matrix has 142 rows" in done.log
    same = ("max_depth", "eta", "gamma", "min_child_weight", "subsample")
    parameters = {name: NOTEBOOK[name] for name in same}
    plain = plain_model(table[:300], parameters, 50)
    features = table[300:].iloc[:, 1:]
    np.testing.assert_allclose(done.predict(features), plain.inplace_predict(features.to_numpy()), rtol=1e-5)


def test_a_table_in_csv_and_in_parquet_gives_the_same_model(tmp_path: Path) -> None:
    table = cancer()
    table.iloc[::7, 3] = np.nan
    settings = {"objective": "binary:logistic", "num_round": 12, "seed": 3, "subsample": 0.8}
    one = train(tmp_path / "csv", settings, train=csv(table, header=True))
    other = train(tmp_path / "parquet", settings, train=parquet(table))
    assert one.code == other.code == 0, one.log + other.log
    assert one.model == other.model


def test_two_runs_with_a_seed_write_the_same_bytes(tmp_path: Path) -> None:
    settings = {"num_round": 10, "subsample": 0.5, "colsample_bynode": 0.5, "seed": 11}
    first, second = (train(tmp_path / name, settings, run_train, train=diabetes()) for name in ("a", "b"))
    assert first.model is not None
    assert first.model == second.model


def test_the_reports_say_what_was_done(tmp_path: Path) -> None:
    table = cancer()
    settings: dict[str, object] = {"objective": "binary:logistic", "num_round": 200, "eta": 0.5}
    settings |= {"early_stopping_rounds": 4, "eval_metric": "logloss,auc"}
    first, second = csv(table[:400], header=True), csv(table[400:], header=True)
    done = train(tmp_path, settings, train=first, validation=second)
    assert done.code == 0, done.log
    report = json.loads(done.output_data["metrics.json"])
    aucs = report["history"]["validation"]["auc"]
    assert report["best_round"] == int(np.argmax(aucs))
    assert report["best_score"] == max(aucs)
    assert report["rows"] == {"train": 400, "validation": 169}
    assert report["dropped_rows"] == {"train": 0, "validation": 0}
    assert report["features"] == list(table.columns[1:])
    assert set(report["phases"]) == {"load", "matrix", "train", "save"}
    assert report["versions"]["xgboost"] == xgb.__version__
    assert done.booster().num_boosted_rounds() == report["best_round"] + 1
    importance = pd.read_csv(tmp_path / "output/data/feature_importance.csv")
    assert sorted(importance["feature"]) == sorted(table.columns[1:])
    gains = done.booster().get_score(importance_type="gain")
    assert importance["feature"][0] == max(gains, key=gains.__getitem__)


def test_a_model_of_a_headerless_file_predicts_a_plain_array(tmp_path: Path) -> None:
    table = diabetes()
    done = train(tmp_path, {"num_round": 5}, train=table)
    booster = done.booster()
    assert booster.feature_names is None
    assert booster.predict(xgb.DMatrix(table.iloc[:, 1:].to_numpy())).shape == (len(table),)


def test_names_of_any_alphabet_are_written_where_the_locale_knows_ascii_only(tmp_path: Path) -> None:
    table = diabetes().rename(columns={"bmi": "größe"})
    write_opt_ml(tmp_path, hyperparameters={"num_round": 2}, channels={"train": csv(table, header=True)})
    done = run_train(tmp_path, environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert done.code == 0, done.log
    assert "größe" in done.output_data["feature_importance.csv"].decode("utf-8")


def test_the_names_of_a_header_are_the_models(tmp_path: Path) -> None:
    table = diabetes().rename(columns={"bmi": "mass [kg/m2] <ratio>"})
    done = train(tmp_path, {"num_round": 5}, train=csv(table, header=True))
    assert done.booster().feature_names == list(table.columns[1:])


@pytest.mark.parametrize("method", ["exact", "approx", "hist", "auto"])
def test_every_tree_method_trains_to_the_error_of_plain_xgboost(tmp_path: Path, method: str) -> None:
    table = diabetes()
    done = train(tmp_path, {"num_round": 20, "tree_method": method, "max_depth": 3}, train=table)
    assert done.code == 0, done.log
    matrix = xgb.DMatrix(table.iloc[:, 1:].to_numpy(), table["target"].to_numpy())
    plain = xgb.train({"tree_method": method, "max_depth": 3}, matrix, 20)
    ours = np.sqrt(np.mean((done.predict(table.iloc[:, 1:]) - table["target"]) ** 2))
    theirs = np.sqrt(np.mean((plain.predict(matrix) - table["target"]) ** 2))
    assert ours == pytest.approx(theirs, rel=0.02)


@pytest.mark.parametrize(
    "updater",
    ["grow_colmaker,prune", "grow_histmaker", "grow_quantile_histmaker,refresh", "grow_quantile_histmaker"],
)
# XGBoost advises against updaters, once.
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_updaters_train_as_in_plain_xgboost(tmp_path: Path, updater: str) -> None:
    table = diabetes()
    done = train(tmp_path, {"num_round": 5, "updater": updater, "max_depth": 3}, train=table)
    assert done.code == 0, done.log
    matrix = xgb.DMatrix(table.iloc[:, 1:].to_numpy(), table["target"].to_numpy())
    plain = xgb.train({"updater": updater, "max_depth": 3}, matrix, 5)
    np.testing.assert_allclose(done.predict(table.iloc[:, 1:]), plain.predict(matrix), rtol=0.02)


@pytest.mark.parametrize("booster", ["gblinear", "dart"])
# XGBoost says that these boosters are deprecated whenever a model of theirs is loaded.
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_other_boosters_train_and_stop_early(tmp_path: Path, booster: str) -> None:
    table = diabetes()
    settings = {"num_round": 30, "booster": booster, "early_stopping_rounds": 3, "eta": 0.5}
    done = train(tmp_path, settings, train=table[:300], validation=table[300:])
    assert done.code == 0, done.log
    history = json.loads(done.output_data["metrics.json"])["history"]["validation"]["rmse"]
    held_out = table[300:]
    error = np.sqrt(np.mean((done.predict(held_out.iloc[:, 1:]) - held_out["target"]) ** 2))
    assert error == pytest.approx(min(history), rel=1e-4)


def test_classes_are_counted_when_num_class_is_not_set(tmp_path: Path) -> None:
    table = diabetes()
    table["target"] = pd.qcut(table["target"], 4, labels=False)
    done = train(tmp_path, {"num_round": 3, "objective": "multi:softprob"}, train=table)
    assert done.code == 0, done.log
    assert done.predict(table.iloc[:, 1:]).shape == (len(table), 4)


def test_a_weight_column_weighs_the_rows(tmp_path: Path) -> None:
    table = diabetes()
    weights = np.linspace(0.1, 3, len(table)).astype(np.float32)
    weighted = table.copy()
    weighted.insert(1, "weight", weights)
    done = train(tmp_path, {"num_round": 5, "csv_weights": "true"}, train=weighted)
    matrix = xgb.QuantileDMatrix(table.iloc[:, 1:].to_numpy(), table["target"].to_numpy(), weight=weights)
    plain = xgb.train({"seed_per_iteration": 1}, matrix, 5)
    features = table.iloc[:, 1:].to_numpy()
    np.testing.assert_allclose(done.predict(table.iloc[:, 1:]), plain.inplace_predict(features), rtol=1e-5)


def test_fast_file_mode_gives_the_model_of_file_mode(tmp_path: Path) -> None:
    table = diabetes()
    models = []
    for mode in ("File", "FastFile"):
        source = parquet(table)
        source = Source(source.files, source.content_type, {"TrainingInputMode": mode})
        models.append(train(tmp_path / mode, {"num_round": 4}, train=source).model)
    assert models[0] is not None
    assert models[0] == models[1]


def test_a_tuner_finds_its_metric_beside_its_other_name_and_needs_no_validation_for_train(
    tmp_path: Path,
) -> None:
    table = cancer()
    settings: dict[str, object] = {"objective": "binary:logistic", "num_round": 2, "eval_metric": "error@0.5"}
    tuned = {"_tuning_objective_metric": "validation:error", "early_stopping_rounds": 1}
    done = train(tmp_path / "a", settings | tuned, train=table[:400], validation=table[400:])
    assert re.search(r"\[0\].*\tvalidation-error:\d", done.log), done.log
    done = train(tmp_path / "b", settings | {"_tuning_objective_metric": "train:error"}, train=table)
    assert re.search(r"\[0\].*\ttrain-error:\d", done.log), done.log
