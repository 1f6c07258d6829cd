"""Files that once left a wrong model: each trains as pandas and XGBoost do, or is refused."""

from __future__ import annotations

import bz2
import io
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from tests.opt_ml import Source, csv, libsvm, parquet, run_train, write_opt_ml
from tests.work import work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.opt_ml import Outcome

ROUNDS = 4


def table(rows: int = 200) -> pd.DataFrame:
    """Return a table whose label follows from its features, and is like no other column."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(rows, 3)), columns=["a", "b", "c"]).round(3)
    frame.insert(0, "y", (3 * frame["a"] - frame["b"] ** 2).round(3))
    return frame.astype(np.float32)


def job(base: Path, train: Source, run: Callable[[Path], Outcome] = work, **settings: object) -> Outcome:
    write_opt_ml(
        base,
        hyperparameters={"num_round": ROUNDS, "tree_method": "hist", **settings},
        channels={"train": train},
    )
    return run(base)


def assert_trained_on(done: Outcome, features: pd.DataFrame, label: pd.Series) -> None:
    """Compare a job's model with XGBoost's own of these rows, by what both predict of them."""
    assert done.code == 0, done.log
    matrix = xgb.QuantileDMatrix(features, label, enable_categorical=True)
    own = xgb.train({"seed_per_iteration": 1, "tree_method": "hist"}, matrix, ROUNDS)
    inner = xgb.DMatrix(features, enable_categorical=True, feature_names=done.booster().feature_names)
    np.testing.assert_array_equal(
        done.booster().predict(inner), own.predict(xgb.DMatrix(features, enable_categorical=True))
    )


def sized(size: str, frame: pd.DataFrame) -> Source:
    """Return a table with a column of text, written by hand."""
    lines = [f"{y!r},{size},{a!r},{b!r},{c!r}" for y, a, b, c in frame.astype(float).itertuples(index=False)]
    return csv("\n".join(["y,size,a,b,c", *lines, ""]).encode())


@pytest.mark.parametrize("size", ['"5\\""', '"say \\"5\\""', '"5" wide"', '"\\""'])
def test_a_quote_inside_quotes_costs_no_row_in_silence(tmp_path: Path, size: str) -> None:
    done = job(tmp_path, sized(size, table()), drop_columns="size")
    assert done.code == 2
    assert done.model is None
    assert done.failure
    assert "train/data.csv, line 2, column 1" in done.failure
    assert 'Write "" for a quote inside quotes' in done.log


@pytest.mark.parametrize("size", ['"5"""', '5"', '"a, b"', '"two\nlines"'])
def test_quotes_as_they_should_be_cost_no_row(tmp_path: Path, size: str) -> None:
    frame = table()
    assert_trained_on(
        job(tmp_path, sized(size, frame), drop_columns="size"), frame[["a", "b", "c"]], frame["y"]
    )


@pytest.mark.parametrize("form", [lambda frame: csv(frame, header=True), parquet])
@pytest.mark.parametrize("label", [4, 0, 1, 3])
def test_the_label_is_the_column_of_that_name(
    tmp_path: Path, form: Callable[[pd.DataFrame], Source], label: int
) -> None:
    frame = table().assign(d=np.float32(1)).set_axis(list("40123"), axis=1)
    frame["3"] = frame["4"] * 2 - frame["0"]
    done = job(tmp_path, form(frame), label_column=label, csv_header="true")
    assert_trained_on(done, frame.drop(columns=str(label)), frame[str(label)])


@pytest.mark.parametrize("name", ["data.libsvm.weight", "data.libsvm.group", "data.libsvm.query", "numbers"])
def test_side_files_are_no_rows(tmp_path: Path, name: str) -> None:
    rows = libsvm(table())
    side = b"\n".join(b"%d" % number for number in range(1, 201))
    done = job(tmp_path, Source({**rows.files, name: side}, "text/libsvm"))
    assert (done.code, done.model) == (2, None)
    assert name in str(done.failure)


@pytest.mark.parametrize("first", [0, 1])
def test_libsvm_without_labels_is_refused(tmp_path: Path, first: int) -> None:
    rows = table().abs()[["a", "b"]].itertuples(index=False)
    lines = [f"{first}:{a} {first + 1}:{b}" for a, b in rows]
    done = job(tmp_path, Source({"data": "\n".join(lines).encode()}, "text/libsvm"))
    assert (done.code, done.model) == (2, None)
    assert f"UserError: channel train: every line begins with {first}:" in str(done.failure)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("whole", [30, 10, 20]),
        ("truth", [True, False, True]),
        ("float", [1.0, 3.0, 2.0]),
        ("word", ["b", "a", "c"]),
    ],
)
def test_categories_of_pandas_are_trained_as_such(tmp_path: Path, name: str, values: list[object]) -> None:
    frame = table()
    kinds = [values[number] for number in np.random.default_rng(1).integers(0, 3, len(frame))]
    frame[name] = pd.Categorical(kinds)
    frame["y"] += (
        frame[name].map({value: 2.0 * place for place, value in enumerate(values)}).astype(np.float32)
    )
    done = job(tmp_path, parquet(frame), enable_categorical="true")
    whole = {value: str(int(value)) for value in values if isinstance(value, float)}
    words = pd.Series(kinds).map(lambda value: whole.get(value, str(value))).astype("category")
    features = frame.drop(columns="y").assign(**{name: words})
    assert_trained_on(done, features, frame["y"])
    # Codes of another order are understood.
    other = features.assign(**{name: words.cat.reorder_categories(list(words.cat.categories)[::-1])})
    np.testing.assert_array_equal(
        done.booster().predict(xgb.DMatrix(other, enable_categorical=True)),
        done.booster().predict(xgb.DMatrix(features, enable_categorical=True)),
    )


def test_a_damaged_second_member_of_bzip2_is_no_end(tmp_path: Path) -> None:
    first, second = (bz2.compress(table().to_csv(index=False).encode()) for _ in range(2))
    damaged = second[:2] + b"x" + second[3:]
    done = job(tmp_path, Source({"data.csv.bz2": first + damaged}, "text/csv"), run_train)
    assert (done.code, done.model) == (2, None)
    assert "can't be decompressed: it is damaged or cut off" in str(done.failure)


def again(text: str) -> str:
    """Return a table as pandas saves it that has read it."""
    return str(pd.read_csv(io.StringIO(text)).to_csv())


INDEXED: dict[str, Callable[[pd.DataFrame], str]] = {
    "an index": lambda frame: frame.to_csv(),
    "an index, saved twice": lambda frame: again(frame.to_csv()),
    "an index with pandas' own name": lambda frame: pd.read_csv(io.StringIO(frame.to_csv())).to_csv(
        index=False
    ),
    "an index from 1, as R's": lambda frame: frame.set_axis(range(1, len(frame) + 1)).to_csv(),
    "a part's index": lambda frame: frame.set_axis(range(500, 500 + len(frame))).to_csv(),
    "a file without header, read with one": lambda frame: again(frame.to_csv(index=False, header=False)),
    "an array": lambda frame: pd.DataFrame(frame.to_numpy()).to_csv(),
    "an array without its index": lambda frame: pd.DataFrame(frame.to_numpy()).to_csv(index=False),
    "an array counted from 1": lambda frame: frame.set_axis(range(1, 5), axis=1).to_csv(index=False),
}


@pytest.mark.parametrize("name", INDEXED)
def test_neither_index_nor_its_header_is_trained_on(tmp_path: Path, name: str) -> None:
    text = INDEXED[name](table())
    done = job(tmp_path, csv(text.encode()))
    read = pd.read_csv(io.StringIO(text)).astype(np.float32)
    meant = read.iloc[:, -4:]
    assert done.log.count("Notice: train/data.csv: ") >= 1
    assert_trained_on(done, meant.iloc[:, 1:], meant.iloc[:, 0])


def test_a_label_that_is_the_index_of_a_parquet_file_is_refused(tmp_path: Path) -> None:
    sink = io.BytesIO()
    table().set_index("y").to_parquet(sink)
    done = job(tmp_path / "a", parquet(sink.getvalue()))
    assert (done.code, done.model) == (2, None)
    assert "'y' as the index of a table of pandas" in str(done.failure)
    done = job(tmp_path / "b", parquet(sink.getvalue()), label_column="a")
    assert_trained_on(done, table()[["b", "c"]], table()["a"])


@pytest.mark.parametrize("first", ["bad,3,7,9", "bad,,,", "bad,70,3,5"])
def test_a_bad_first_record_is_not_lost(tmp_path: Path, first: str) -> None:
    rows = table().to_csv(index=False, header=False)
    done = job(tmp_path, csv(f"{first}\n{rows}".encode()))
    assert (done.code, done.model) == (2, None)
    assert "train/data.csv, line 1, column 0: 'bad' is not a label" in str(done.failure)


@pytest.mark.parametrize(("yes", "no"), [("True", "False"), ("TRUE", "FALSE"), ("true", "false"), ("t", "f")])
def test_truth_values_of_csv_train_as_those_of_parquet(tmp_path: Path, yes: str, no: str) -> None:
    frame = table()
    frame["c"] = frame["c"] > 0
    frame["y"] += frame["c"]
    text = frame.assign(c=frame["c"].map({True: yes, False: no})).to_csv(index=False)
    done = job(tmp_path / "a", csv(text.encode()))
    assert done.model == job(tmp_path / "b", parquet(frame)).model
    assert_trained_on(done, frame[["a", "b", "c"]].astype(np.float32), frame["y"])


def test_a_file_in_both_channels_is_noticed(tmp_path: Path) -> None:
    write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 2},
        channels={"train": csv(table()), "validation": csv(table(), name="other.csv")},
    )
    done = work(tmp_path)
    assert done.code == 0
    assert done.log.count("Notice: train/data.csv and validation/other.csv are the same file. ") == 1
