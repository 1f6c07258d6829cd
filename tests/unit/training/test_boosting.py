from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import accuracy_score

from smxgb.rows.worker_group import Solo
from smxgb.settings.metrics import parse_metric
from smxgb.training.boosting import EarlyStopping, Recipe, Run, boost, finish
from smxgb.training.evaluation import Evaluator, Values, evaluation_line, fixed_point, parse_evaluation
from smxgb.training.metrics import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from smxgb.settings.objectives import Objective
    from smxgb.training.boosting import Trained
    from smxgb.training.state import TrainingState

HPO_REGEX = r".*\[[0-9]+\].*#011validation-mae:(\S+)"


def diabetes() -> tuple[xgb.DMatrix, xgb.DMatrix]:
    x, y = load_diabetes(return_X_y=True)
    return xgb.DMatrix(x[:300], y[:300]), xgb.DMatrix(x[300:], y[300:])


def evaluator(
    texts: list[str], objective: Objective = "reg:squarederror", **matrices: xgb.DMatrix
) -> Evaluator:
    metrics = [parse_metric(text) for text in texts]
    return Evaluator(metrics, Problem(objective), matrices, Solo("algo-1"))


def ignored(_: Run, __: Values) -> bool:
    """Take no notice of a round."""
    return False


def into(lines: list[str]) -> Callable[[Run, Values], bool]:
    def after_round(run: Run, values: Values) -> bool:
        lines.append(evaluation_line(run.rounds - 1, values))
        return False

    return after_round


def trees(booster: xgb.Booster) -> list[str]:
    return booster.get_dump(with_stats=True)


def test_the_loop_gives_the_trees_of_xgboost_train() -> None:
    train, _ = diabetes()
    parameters = {"max_depth": 3, "subsample": 0.7, "seed": 4, "nthread": 2}
    ours = boost(Recipe(parameters, 8), train, evaluator(["rmse"], train=train), ignored)
    assert trees(ours.booster) == trees(xgb.train(parameters, train, 8))


def test_each_round_says_one_line_with_data_sets_then_metrics_in_order() -> None:
    train, validation = diabetes()
    lines: list[str] = []
    recipe = Recipe({"max_depth": 2, "nthread": 2}, 3)
    seen = evaluator(["rmse", "mae"], train=train, validation=validation)
    done = boost(recipe, train, seen, into(lines))
    number = r":\d+\.\d{5,12}"
    asked = "train-rmse", "train-mae", "validation-rmse", "validation-mae"
    pattern = r"\[(\d)\]" + "".join(rf"\t{name}{number}" for name in asked)
    assert [re.fullmatch(pattern, line)[1] for line in lines] == ["0", "1", "2"]  # type: ignore[index]
    tuned = re.match(HPO_REGEX, lines[-1].replace("\t", "#011"))
    assert tuned
    assert float(tuned[1]) == pytest.approx(done.history["validation"]["mae"][-1], rel=1e-5)


def test_a_metric_keeps_the_name_it_was_asked_by() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    train = xgb.DMatrix(x, y)
    lines: list[str] = []
    recipe = Recipe({"objective": "binary:logistic", "nthread": 2}, 1)
    boost(recipe, train, evaluator(["error@0.5", "logloss"], train=train), into(lines))
    assert "\ttrain-error@0.5:" in lines[0]


def test_one_metric_of_two_names_is_logged_under_both() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    train, validation = xgb.DMatrix(x[:400], y[:400]), xgb.DMatrix(x[400:], y[400:])
    seen = evaluator(["error@0.5", "logloss", "error"], "binary:logistic", train=train, validation=validation)
    done = boost(Recipe({"objective": "binary:logistic", "nthread": 2}, 2), train, seen, ignored)
    for data, matrix in (("train", train), ("validation", validation)):
        wrong = np.mean((done.booster.predict(matrix) > 0.5) != matrix.get_label())
        values = {metric: of_rounds[-1] for metric, of_rounds in done.history[data].items()}
        assert list(values) == ["error@0.5", "logloss", "error"]
        assert values["error"] == values["error@0.5"] == pytest.approx(wrong, abs=1e-6)


@pytest.mark.parametrize("booster", ["gbtree", "dart", "gblinear"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_early_stopping_leaves_the_model_of_the_best_round(booster: str) -> None:
    train, validation = diabetes()
    parameters: dict[str, object] = {"booster": booster, "eta": 0.9, "nthread": 1, "seed": 1}
    if booster == "dart":
        parameters |= {"rate_drop": 0.5}
    if booster == "gblinear":
        parameters |= {"updater": "coord_descent", "eta": 1.0, "lambda": 0.0}
    rule = EarlyStopping(3, "rmse", "validation", maximise=False)
    lines: list[str] = []
    done = boost(Recipe(parameters, 60, rule), train, evaluator(["rmse"], validation=validation), into(lines))
    values = done.history["validation"]["rmse"]
    assert done.best_round == int(np.argmin(values))
    assert done.rounds == len(lines) == min(60, done.best_round + 4)
    error = float(np.sqrt(np.mean((done.booster.predict(validation) - validation.get_label()) ** 2)))
    assert error == pytest.approx(min(values), rel=1e-5)


RESUMED: dict[str, dict[str, object]] = {
    "hist": {},
    "sampled": {"subsample": 0.5, "colsample_bytree": 0.5, "colsample_bynode": 0.7},
    "lossguide": {"grow_policy": "lossguide", "max_leaves": 6},
    "gradient-based": {"sampling_method": "gradient_based", "subsample": 0.4},
    "dart": {"booster": "dart", "rate_drop": 0.4, "subsample": 0.6},
    "forest": {"num_parallel_tree": 3, "subsample": 0.6},
    "approx": {"tree_method": "approx", "subsample": 0.6},
    "exact": {"tree_method": "exact", "colsample_bylevel": 0.5},
    "absolute error": {"objective": "reg:absoluteerror"},
    "linear": {"booster": "gblinear", "updater": "coord_descent"},
}


def resumed(recipe: Recipe, at: int) -> tuple[Trained, Trained, list[str], list[str]]:
    """Train in one go, and with a break after `at` rounds; return both results and their lines."""
    train, validation = diabetes()
    states: list[TrainingState] = []
    whole_lines: list[str] = []
    lines: list[str] = []

    def stop(run: Run, values: Values) -> bool:
        lines.append(evaluation_line(run.rounds - 1, values))
        states.append(run.state())
        return run.rounds == at

    seen = evaluator(["rmse"], train=train, validation=validation)
    whole = boost(recipe, train, seen, into(whole_lines))
    broken = boost(recipe, train, seen, stop)
    assert broken.is_stopped
    assert broken.rounds == at
    go_on = Evaluator([parse_metric("rmse")], Problem("reg:squarederror"), seen.matrices, Solo("algo-1"))
    return whole, boost(recipe, train, go_on, into(lines), states[-1]), whole_lines, lines


@pytest.mark.parametrize("kind", RESUMED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_training_that_goes_on_from_a_state_gives_the_bytes_of_training_in_one_go(kind: str) -> None:
    parameters = {"nthread": 1, "seed": 5, "seed_per_iteration": 1, "max_depth": 3, **RESUMED[kind]}
    whole, again, whole_lines, lines = resumed(Recipe(parameters, 9), 4)
    assert again.booster.save_raw("ubj") == whole.booster.save_raw("ubj")
    assert (again.history, lines) == (whole.history, whole_lines)


@pytest.mark.parametrize("at", [2, 9])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_early_stopping_goes_on_with_its_best_round_before_and_after_it(booster: str, at: int) -> None:
    parameters = {"booster": booster, "eta": 0.6, "nthread": 1, "seed": 1, "seed_per_iteration": 1}
    parameters |= {"rate_drop": 0.5} if booster == "dart" else {}
    rule = EarlyStopping(8, "rmse", "validation", maximise=False)
    whole, again, whole_lines, lines = resumed(Recipe(parameters, 60, rule), at)
    assert whole.rounds < 60
    assert again.booster.save_raw("ubj") == whole.booster.save_raw("ubj")
    assert (again.best_round, again.best_score, lines) == (whole.best_round, whole.best_score, whole_lines)


def test_training_that_early_stopping_has_ended_stays_ended() -> None:
    train, validation = diabetes()
    rule = EarlyStopping(2, "rmse", "validation", maximise=False)
    states: list[TrainingState] = []

    def keep(run: Run, _: Values) -> bool:
        states.append(run.state())
        return False

    parameters = {"eta": 0.9, "nthread": 1, "seed_per_iteration": 1}
    seen = evaluator(["rmse"], validation=validation)
    whole = boost(Recipe(parameters, 60, rule), train, seen, keep)
    longer = Recipe(parameters, 200, rule)
    again = boost(longer, train, seen, ignored, states[-1])
    assert whole.rounds == again.rounds < 60
    for same in (again, finish(longer, states[-1])):
        assert same.booster.save_raw("ubj") == whole.booster.save_raw("ubj")
        assert not same.is_stopped


def test_a_metric_that_is_new_has_no_value_in_the_rounds_before() -> None:
    train, _ = diabetes()
    states: list[TrainingState] = []

    def stop(run: Run, _: Values) -> bool:
        states.append(run.state())
        return run.rounds == 2

    recipe = Recipe({"nthread": 1}, 3)
    boost(recipe, train, evaluator(["rmse"], train=train), stop)
    done = boost(recipe, train, evaluator(["mae"], train=train), ignored, states[-1])
    assert list(done.history["train"]) == ["mae"]
    assert [math.isnan(value) for value in done.history["train"]["mae"]] == [True, True, False]


def test_early_stopping_follows_a_metric_that_is_to_grow() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    train, validation = xgb.DMatrix(x[:400], y[:400]), xgb.DMatrix(x[400:], y[400:])
    rule = EarlyStopping(2, "auc", "validation", maximise=True)
    recipe = Recipe({"objective": "binary:logistic", "nthread": 2}, 50, rule)
    done = boost(recipe, train, evaluator(["logloss", "auc"], validation=validation), ignored)
    assert done.best_score == max(done.history["validation"]["auc"])


def test_an_undefined_value_is_never_the_best() -> None:
    rule = EarlyStopping(1, "auc", "validation", maximise=True)
    assert not rule.better(math.nan, 0.5)
    assert not rule.better(math.nan, None)
    assert rule.better(0.1, math.nan)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.234567, "1.23457"),
        (0.3123456789, "0.312346"),
        (123.4, "123.40000"),
        (0.0000123456789, "0.0000123457"),
        (1.5e-9, "0.000000001500"),
        (0.0, "0.00000"),
        (-0.25, "-0.250000"),
        (1e20, "100000000000000000000.00000"),
        (math.nan, "nan"),
        (math.inf, "inf"),
    ],
)
def test_values_show_six_digits_and_never_an_exponent(value: float, text: str) -> None:
    assert fixed_point(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_shown_value_reads_back_to_its_digits(value: float) -> None:
    text = fixed_point(value)
    assert re.fullmatch(r"-?\d+\.\d{5,12}", text)
    assert float(text) == pytest.approx(value, rel=1e-5, abs=1e-12)


def test_a_line_has_tabs_between_its_values() -> None:
    assert evaluation_line(7, {("train", "auc"): 0.5}) == "[7]\ttrain-auc:0.500000"


def test_values_are_read_from_xgboosts_line() -> None:
    assert parse_evaluation("[0]\ttrain-error@0.7:0.25\tvalidation-x-y:nan")[0] == 0.25


def test_own_metrics_stand_where_they_were_asked_for() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    train = xgb.DMatrix(x, y, weight=np.where(y == 1, 3.0, 1.0))
    lines: list[str] = []
    seen = evaluator(["accuracy", "logloss", "f1"], "binary:logistic", train=train)
    done = boost(Recipe({"objective": "binary:logistic", "nthread": 2}, 2), train, seen, into(lines))
    assert re.fullmatch(r"\[0\]\ttrain-accuracy:\S+\ttrain-logloss:\S+\ttrain-f1:\S+", lines[0])
    predicted = done.booster.predict(train) > 0.5
    expected = accuracy_score(y, predicted, sample_weight=train.get_weight())
    assert done.history["train"]["accuracy"][-1] == pytest.approx(expected)


def test_only_own_metrics_leave_no_default_metric() -> None:
    train, _ = diabetes()
    done = boost(Recipe({"nthread": 2}, 1), train, evaluator(["r2"], train=train), ignored)
    assert list(done.history["train"]) == ["r2"]


# XGBoost warns of it too.
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_metric_that_is_never_defined_is_said_once_and_stops_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x, y = load_breast_cancer(return_X_y=True)
    train, validation = xgb.DMatrix(x, y), xgb.DMatrix(x[y == 1], y[y == 1])
    rule = EarlyStopping(2, "auc", "validation", maximise=True)
    recipe = Recipe({"objective": "binary:logistic", "nthread": 2}, 5, rule)
    done = boost(recipe, train, evaluator(["auc"], validation=validation), ignored)
    assert (done.rounds, done.best_round) == (5, None)
    said = capsys.readouterr().out
    assert said.count("validation-auc is undefined (nan) on these rows: it needs labels of two classes") == 1
    assert said.count("validation-auc was undefined (nan) in every round. The model is that of the last") == 1


def test_an_undefined_loss_is_not_blamed_on_the_classes(capsys: pytest.CaptureFixture[str]) -> None:
    x, y = load_diabetes(return_X_y=True)
    boost(Recipe({"nthread": 1}, 1), train := xgb.DMatrix(x, -y), evaluator(["rmsle"], train=train), ignored)
    said = capsys.readouterr().out
    assert "train-rmsle is undefined (nan) on these rows: it needs labels that it is defined for" in said


def test_the_auc_of_a_worker_that_is_alone_is_xgboosts_with_both_data_sets_side_by_side() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    sets = {"train": xgb.DMatrix(x[:400], y[:400]), "validation": xgb.DMatrix(x[400:], y[400:])}
    parameters = {"objective": "binary:logistic", "max_depth": 3, "nthread": 2}
    metrics = ["auc", "error", "aucpr", "accuracy"]
    ours = boost(Recipe(parameters, 5), sets["train"], evaluator(metrics, "binary:logistic", **sets), ignored)
    theirs: dict[str, dict[str, list[float]]] = {}
    watched = [(matrix, name) for name, matrix in sets.items()]
    parameters["eval_metric"] = ["auc", "error", "aucpr"]
    xgb.train(parameters, sets["train"], 5, evals=watched, evals_result=theirs, verbose_eval=False)
    for data, of_set in theirs.items():
        for metric, values in of_set.items():
            assert ours.history[data][metric] == pytest.approx(values, abs=1e-9)
        assert ours.history[data]["accuracy"] == pytest.approx([1 - error for error in of_set["error"]])
