"""Labels that are words, or do not begin at 0: coded alike in every format, and kept in the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from tests.opt_ml import Source, csv, libsvm, parquet, write_opt_ml
from tests.work import dry_run, work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.opt_ml import Outcome

WORDS = ["éléphant noir", "cat", 'say "dog"', "5,5"]
SETTINGS = {"objective": "multi:softprob", "num_round": 4, "max_depth": 3, "class_labels": "auto"}
ROWS = 300


def table(labels: object, seed: int = 0) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame(chance.normal(size=(ROWS, 3)).round(4).astype(np.float32), columns=list("abc"))
    codes = chance.integers(0, 4, ROWS) if seed else np.arange(ROWS) % 4
    frame["a"] += codes
    frame.insert(0, "y", np.asarray(labels)[codes])
    return frame


def job(base: Path, settings: Mapping[str, object] | None = None, **channels: Source) -> Outcome:
    return work(write_opt_ml(base, hyperparameters={**SETTINGS, **(settings or {})}, channels=channels))


def by_hand(frame: pd.DataFrame, classes: Sequence[object]) -> xgb.Booster:
    codes = [classes.index(label) for label in frame["y"]]
    matrix = xgb.QuantileDMatrix(frame.drop(columns="y"), codes)
    return xgb.train({"objective": "multi:softprob", "max_depth": 3, "num_class": len(classes)}, matrix, 4)


def with_header(frame: pd.DataFrame) -> Source:
    return csv(frame, header=True)


def as_dictionary(frame: pd.DataFrame) -> Source:
    return parquet(frame.astype({"y": "category"}))


@pytest.mark.parametrize("write", [csv, with_header, parquet, as_dictionary])
def test_words_are_classes_in_every_format(tmp_path: Path, write: object) -> None:
    frame = table(WORDS)
    done = job(tmp_path, train=write(frame), validation=write(table(WORDS, seed=1)))  # type: ignore[operator]
    assert done.code == 0, done.log
    classes = sorted(WORDS)
    assert "Class labels: 0 = '5,5', 1 = 'cat', 2 = 'say \"dog\"', 3 = 'éléphant noir'." in done.log
    assert json.loads(done.output_data["metrics.json"])["class_labels"] == classes
    booster = done.booster()
    kept = json.loads(booster.attr("smxgb") or "{}")
    assert kept["classes"] == classes
    features = frame.drop(columns="y").to_numpy()
    oracle = by_hand(frame, classes)
    np.testing.assert_array_equal(booster.inplace_predict(features), oracle.inplace_predict(features))
    predicted = [kept["classes"][code] for code in booster.inplace_predict(features).argmax(axis=1)]
    assert np.mean(np.array(predicted) == frame["y"]) > 0.5


@pytest.mark.parametrize("numbers", [[1, 2, 3, 4], [10, 20, 30, 100], [-1, 0, 1, 2], [0.5, 1, 1.5, 2]])
@pytest.mark.parametrize("write", [csv, parquet, libsvm])
def test_numbers_are_classes_in_their_order(tmp_path: Path, numbers: list[float], write: object) -> None:
    frame = table(numbers)
    if write is parquet and 0.5 in numbers:
        frame["y"] = frame["y"].astype(str)
    done = job(tmp_path, train=write(frame))  # type: ignore[operator]
    assert done.code == 0, done.log
    features = frame.drop(columns="y").to_numpy()
    oracle = by_hand(table(numbers), numbers).inplace_predict(features)
    np.testing.assert_allclose(done.booster().inplace_predict(features), oracle, rtol=1e-6)


def test_a_list_gives_the_order_and_two_words_are_a_binary_label(tmp_path: Path) -> None:
    order = ["cat", "5,5", 'say "dog"', "éléphant noir"]
    done = job(tmp_path / "list", {"class_labels": json.dumps(order)}, train=csv(table(WORDS)))
    assert json.loads(done.output_data["metrics.json"])["class_labels"] == order
    frame = table(["no", "yes", "no", "yes"])
    binary = {"objective": "binary:logistic", "eval_metric": "auc", "class_labels": "no,yes"}
    done = job(
        tmp_path / "binary", binary, train=csv(frame), validation=csv(table(["no", "yes", "no", "yes"], 1))
    )
    assert done.code == 0, done.log
    matrix = xgb.QuantileDMatrix(frame.drop(columns="y").to_numpy(), frame["y"] == "yes")
    oracle = xgb.train({"objective": "binary:logistic", "max_depth": 3}, matrix, 4)
    features = frame.drop(columns="y").to_numpy()
    np.testing.assert_array_equal(done.booster().inplace_predict(features), oracle.inplace_predict(features))


def failure(base: Path, settings: Mapping[str, object], **channels: Source) -> str:
    done = job(base, settings, **channels)
    assert done.code == 2, done.log
    return str(done.failure)


@pytest.mark.parametrize("write", [csv, parquet])
def test_a_label_that_is_no_class_is_named_with_its_place(tmp_path: Path, write: object) -> None:
    other = table(WORDS, seed=1)
    other.loc[7, "y"] = "wolf"
    files = write(table(WORDS, seed=2), other)  # type: ignore[operator]
    (second,) = (name for name in files.files if name.startswith("1."))
    text = failure(tmp_path / "a", {}, train=write(table(WORDS)), validation=files)  # type: ignore[operator]
    assert text.startswith(
        f"UserError: validation/{second}, row 8: the label 'wolf' is none of those that train has ('5,5', "
        "'cat', "
    )
    listed = {"class_labels": json.dumps(WORDS)}
    text = failure(tmp_path / "b", listed, train=files)
    assert f"train/{second}, row 8: the label 'wolf' is none of those that class_labels has" in text


def test_class_labels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    train = csv(table(WORDS))
    assert "4 different labels" in failure(tmp_path / "a", {"objective": "binary:logistic"}, train=train)
    assert "objective=reg:squarederror learns numbers" in failure(
        tmp_path / "b", {"objective": "reg:squarederror"}, train=train
    )
    assert "num_class=7, and there are 4 class labels" in failure(
        tmp_path / "c", {"num_class": 7}, train=train
    )
    assert "class_labels holds 'a' twice" in failure(tmp_path / "d", {"class_labels": "a,a"}, train=train)
    assert "holds 3 classes, and objective=binary:logistic has two" in failure(
        tmp_path / "e", {"class_labels": "a,b,c", "objective": "binary:logistic"}, train=train
    )
    assert "holds 3 classes, and num_class=2" in failure(
        tmp_path / "f", {"class_labels": "a,b,c", "num_class": 2}, train=train
    )


def test_a_label_that_is_missing_is_refused_or_left_out(tmp_path: Path) -> None:
    frame = table(WORDS)
    frame.loc[3, "y"] = None
    assert "line 5, column 0 ('y'): the label is empty" in failure(
        tmp_path / "a", {}, train=with_header(frame)
    )
    done = job(tmp_path / "b", {"invalid_label": "drop"}, train=parquet(frame))
    assert "dropped 1 row without a valid label" in done.log


def test_without_the_setting_the_mistake_says_what_to_do(tmp_path: Path) -> None:
    unset = {"class_labels": ""}
    assert "(words as classes: class_labels=auto)" in failure(tmp_path / "a", unset, train=csv(table(WORDS)))
    text = failure(tmp_path / "b", {**unset, "num_class": 4}, train=csv(table([1, 2, 3, 4])))
    assert text.endswith(
        "num_class=4 allows 0 to 3: classes begin at 0: set class_labels=auto, or subtract 1."
    )


def test_check_says_the_classes(tmp_path: Path) -> None:
    done = dry_run(write_opt_ml(tmp_path, hyperparameters=SETTINGS, channels={"train": csv(table(WORDS))}))
    assert done.returncode == 0, done.stderr
    assert "Class labels: 0 = '5,5'," in done.stdout


def test_check_refuses_what_the_job_refuses(tmp_path: Path) -> None:
    other = table(WORDS, seed=1)
    other.loc[7, "y"] = "wolf"
    joined = words("y,colour", *BODY, "y,colour", *BODY)
    for number, (settings, channels, said) in enumerate(
        (
            (
                {"class_labels": "cat,dog"},
                {"train": csv(table(WORDS))},
                "none of those that class_labels has",
            ),
            (
                {},
                {"train": csv(table(WORDS)), "validation": csv(other)},
                "channel validation: the label 'wolf'",
            ),
            ({"objective": "binary:logistic"}, {"train": csv(table(WORDS))}, "4 different labels"),
            ({"categorical_columns": "colour"}, {"train": joined}, "a header is repeated"),
        )
    ):
        base = write_opt_ml(
            tmp_path / str(number), hyperparameters={**SETTINGS, **settings}, channels=channels
        )
        done = dry_run(base)
        assert done.returncode == 2, done.stdout
        assert said in done.stderr
        assert said in str(work(base).failure) or "row 8: the label 'wolf'" in str(work(base).failure)


BODY = [f"{'yes' if row % 2 else 'no'},{row % 7}" for row in range(80)]


def words(*records: str) -> Source:
    return Source({"a.csv": "".join(f"{record}\n" for record in records).encode()}, "text/csv")


def test_a_header_among_the_rows_is_no_class(tmp_path: Path) -> None:
    joined = words("y,colour", *BODY, "y,colour", *BODY)
    text = failure(tmp_path / "a", {"categorical_columns": "colour"}, train=joined)
    assert "rows with the label 'y', which is the name of the label's column: a header is repeated" in text
    assert "rows with the label 'y'" in failure(tmp_path / "footer", {}, train=words("y,a", *BODY, "y,99"))
    done = job(
        tmp_path / "header", {"class_labels": "auto"}, train=words("y,5,2", *(f"{row},1" for row in BODY))
    )
    assert done.code == 0, done.log
    assert "Notice: train/a.csv: its first record (y, 5, 2) is read as a row, and has a word" in done.log
    assert "Notice: One row of train alone has the label 'y'" in done.log
    done = job(tmp_path / "total", {}, train=words("y,a", *BODY, "Total,99"))
    assert "Notice: One row of train alone has the label 'Total': if it is a header or a sum" in done.log


def test_a_number_is_one_class_however_it_is_written(tmp_path: Path) -> None:
    for name, spelled, classes in (
        ("signs", ["+1", "-1", "1"], ["-1", "1"]),
        ("zeros", ["0.10", "0.1", "10.5", "2"], ["0.1", "2", "10.5"]),
        ("exponents", ["1e3", "1000", "7"], ["7", "1000"]),
    ):
        records = [f"{spelled[row % len(spelled)]},{row}" for row in range(60)]
        done = job(tmp_path / name, {}, train=words("y,a", *records))
        assert json.loads(done.output_data["metrics.json"])["class_labels"] == classes
    frame = pd.DataFrame({"y": np.array([1.1, 2.1, 3.1] * 20, np.float32), "a": range(60)})
    for write in (parquet, with_header):
        done = job(tmp_path / write.__name__, {}, train=write(frame))
        assert json.loads(done.output_data["metrics.json"])["class_labels"] == ["1.1", "2.1", "3.1"]
    padded = pd.DataFrame({"y": [" cat", "cat", "dog"] * 20, "a": range(60)})
    done = job(tmp_path / "padded", {"objective": "binary:logistic"}, train=parquet(padded))
    assert json.loads(done.output_data["metrics.json"])["class_labels"] == ["cat", "dog"]


def test_a_list_may_hold_numbers(tmp_path: Path) -> None:
    frame = table([1, 2, 3, 4])
    for name, listed in (("json", "[4, 3, 2, 1]"), ("words", "4,3,2,1")):
        done = job(tmp_path / name, {"class_labels": listed}, train=csv(frame))
        assert json.loads(done.output_data["metrics.json"])["class_labels"] == ["4", "3", "2", "1"]


def test_words_that_no_row_has_are_no_classes(tmp_path: Path) -> None:
    frame = table(WORDS)
    frame["y"] = pd.Categorical(frame["y"], categories=["never", *WORDS])
    done = job(tmp_path, train=parquet(frame))
    assert json.loads(done.output_data["metrics.json"])["class_labels"] == sorted(WORDS)


def test_names_of_rows_are_no_classes(tmp_path: Path) -> None:
    frame = table(WORDS).assign(y=[f"row {row}" for row in range(ROWS)])
    assert "300 different values in 300 rows of train" in failure(tmp_path, {}, train=csv(frame))
