"""Notices: jobs whose rows or rounds may hold a mistake say so once, and others say nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
    make_regression,
)
from tests.opt_ml import Source, csv, libsvm, parquet, recordio, write_opt_ml
from tests.work import work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.opt_ml import Outcome

ROWS = 400
BINARY = {"objective": "binary:logistic"}


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def plain(rows: int = ROWS, seed: int = 0, **columns: object) -> pd.DataFrame:
    """Return a table with nothing remarkable, and `columns` beside."""
    chance = random(seed)
    frame = pd.DataFrame({"y": chance.normal(size=rows), "a": chance.normal(size=rows)})
    frame["b"] = frame["y"] + chance.normal(size=rows)
    return frame.assign(**columns)


def binary(rows: int = ROWS, share: float = 0.4, **columns: object) -> pd.DataFrame:
    labels = (np.arange(rows) < share * rows).astype(int)
    return plain(rows).assign(**columns).assign(y=random(1).permutation(labels))


def ids(rows: int = ROWS) -> list[str]:
    return [f"id{number}" for number in range(rows)]


def notices(base: Path, settings: Mapping[str, object], **channels: Source) -> list[str]:
    """Run a job and return its notices, which the log and the report both have."""
    done = job(base, settings, **channels)
    said = json.loads(done.output_data["metrics.json"])["notices"]
    assert [line for line in done.log.splitlines() if line.startswith("Notice: ")] == [
        f"Notice: {text}" for text in said
    ]
    return list(said)


def job(base: Path, settings: Mapping[str, object], **channels: Source) -> Outcome:
    write_opt_ml(base, hyperparameters={"num_round": 3, **settings}, channels=channels)
    done = work(base)
    assert done.code == 0, done.log
    return done


@dataclass(frozen=True)
class Case:
    """A table of one notice, which begins with these words."""

    says: str
    train: pd.DataFrame
    validation: pd.DataFrame | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


def cases() -> dict[str, Case]:
    half = {"categorical_columns": "c"}
    colours = random(2).choice(["red", "green"], ROWS)
    return {
        "the label counts rows": Case(
            "The labels of train are 0 to 399, each once", plain().assign(y=range(ROWS))
        ),
        "the label counts rows from 1, in any order": Case(
            "The labels of train are 1 to 400, each once", plain().assign(y=random().permutation(ROWS) + 1)
        ),
        "the label counts from any number": Case(
            "The labels of train are 1001 to 1400, each once",
            plain().assign(y=random().permutation(ROWS) + 1001),
        ),
        "the label counts in tens": Case(
            "The labels of train are -50 to 3940, each 10th once", plain().assign(y=np.arange(ROWS) * 10 - 50)
        ),
        "a label in milliseconds": Case(
            "The labels of train are whole numbers above 16,777,216",
            plain().assign(y=random().integers(1_600_000_000_000, 1_700_000_000_000, ROWS)),
        ),
        "a class that no row has": Case(
            "No row has class 0: number the classes 0, 1, 2 and so on",
            plain().assign(y=random().integers(1, 4, ROWS)),
            settings={"objective": "multi:softmax", "num_class": 4},
        ),
        "a time in seconds": Case(
            "The column 'time' has whole numbers above 16,777,216",
            plain(time=random().integers(1_600_000_000, 1_700_000_000, ROWS)),
        ),
        "a time of which some are missing": Case(
            "The column 'time' has whole numbers above 16,777,216",
            plain(time=random().integers(1_600_000_000, 1_700_000_000, ROWS)).assign(
                time=lambda frame: frame["time"].astype("Int64").where(frame.index % 3 > 0)
            ),
        ),
        "long numbers": Case(
            "The columns 'i', 'j' have whole numbers above 16,777,216",
            plain(i=range(ROWS), j=-(1 << 25) - 1).assign(i=lambda frame: frame["i"] + (1 << 24)),
        ),
        "a category for each row": Case(
            "The column 'c' has nearly as many categories as rows", plain(c=ids()), settings=half
        ),
        "one category": Case("The column 'c' has the same category in all rows", plain(c="x"), settings=half),
        "new categories in validation": Case(
            "The column 'c' has categories in most rows of validation that train does not have",
            plain(c=colours),
            plain(seed=5, c=["red", "Green", "Blue", "White"] * 100),
            half,
        ),
        "a feature in another unit": Case(
            "The column 'k' tells the label exactly", plain().assign(k=lambda frame: frame["y"] * -1.8 + 32)
        ),
        "a feature that parts the classes": Case(
            "The column 'k' tells the label exactly",
            binary().assign(k=lambda frame: frame["y"] * 5 - random().uniform(size=ROWS)),
            settings=BINARY,
        ),
        "the classes as words": Case(
            "The column 'c' tells the label exactly",
            binary().assign(c=lambda frame: np.where(frame["y"] == 1, "yes", "no")),
            settings=BINARY | half,
        ),
        "three classes as words": Case(
            "The column 'c' tells the label exactly",
            plain(c=np.array(["x", "y", "z"])[np.arange(ROWS) % 3]).assign(y=np.arange(ROWS) % 3),
            settings={"objective": "multi:softmax"} | half,
        ),
        "a feature that is nearly the label": Case(
            "The column 'k' tells nearly all of the label",
            plain().assign(k=lambda frame: frame["y"] + 5e-4 * random(7).normal(size=ROWS)),
        ),
        "classes in order and a feature that parts them": Case(
            "The column 'k' tells the label exactly",
            binary(5_000).sort_values("y").assign(k=lambda frame: frame["y"] * 2.0 - 1),
            settings=BINARY,
        ),
        "few positives": Case(
            "8 of the 400 rows of train have the label 1, and all rows count alike: set scale_pos_weight=49 ",
            binary(share=0.02),
            settings=BINARY,
        ),
        "the last round is the best": Case(
            "The best round is the last of all 12",
            plain(),
            plain(seed=5),
            {"num_round": 12, "eta": 0.01},
        ),
        "too many rounds": Case(
            "validation-rmse was best in round ", plain(), plain(seed=5), {"num_round": 60, "eta": 1}
        ),
        "rows in both channels": Case(
            "5 % of validation's rows are in train too",
            plain(),
            pd.concat([plain()[:20], plain(380, seed=5)]),
        ),
        "one class in validation alone": Case(
            "Validation has the label 3, which train does not have",
            plain().assign(y=np.arange(ROWS) % 3),
            plain(seed=5).assign(y=np.arange(ROWS) % 4),
            {"objective": "multi:softprob"},
        ),
        "labels beyond those of train": Case(
            "50 % of validation's labels are outside those of train",
            plain().assign(y=np.linspace(0, 1, ROWS)),
            plain(seed=5).assign(y=np.linspace(0, 2, ROWS)),
        ),
        "early stopping without validation": Case(
            "Early stopping watches the rows that are trained on",
            plain(),
            settings={"early_stopping_rounds": 2},
        ),
    }


@pytest.mark.parametrize("name", cases())
def test_what_is_remarkable_is_said_once_in_the_log_and_in_the_report(tmp_path: Path, name: str) -> None:
    case = cases()[name]
    channels = {"train": case.train} | ({} if case.validation is None else {"validation": case.validation})
    for kind in (parquet, as_csv):
        [said] = notices(
            tmp_path / kind.__name__, case.settings, **{n: kind(frame) for n, frame in channels.items()}
        )
        assert said.startswith(case.says)


def as_csv(frame: pd.DataFrame) -> Source:
    return csv(frame, header=True)


@pytest.mark.parametrize("write", [libsvm, recordio, lambda frame: recordio(frame, sparse=True)])
def test_rows_without_names_are_looked_at_too(
    tmp_path: Path, write: Callable[[pd.DataFrame], Source]
) -> None:
    frame = plain(1_500, time=1_600_000_001).assign(k=lambda frame: frame["y"] * 2)
    time, label, rows = notices(tmp_path, {}, train=write(frame), validation=write(frame[:900]))
    assert time.startswith("The column 'f2' has whole numbers above 16,777,216")
    assert label.startswith("The column 'f3' tells the label exactly")
    assert rows.startswith("100 % of validation's rows are in train too")


def clean() -> dict[str, tuple[Mapping[str, object], pd.DataFrame, bool]]:
    """Return settings, a table with its label first, and whether a part of it is for validation."""

    def bundled(load: Callable[..., tuple[pd.DataFrame, pd.Series]]) -> pd.DataFrame:
        features, label = load(return_X_y=True, as_frame=True)
        frame = pd.concat([label.rename("y"), features], axis=1)
        return frame.sample(frac=1, random_state=0).reset_index(drop=True)

    def made(features: np.ndarray, label: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(features).rename(columns="x{}".format).assign(y=label).loc[:, ::-1]

    chance = random(3)
    few = pd.DataFrame(
        {
            "y": chance.integers(0, 2, 600),
            "c": chance.choice(list("abcd"), 600),
            "n": chance.integers(0, 3, 600),
        }
    )
    skewed = plain(700).assign(y=np.exp(2 * chance.normal(size=700)))
    cut = plain(500).assign(a=lambda frame: frame["a"].round(1))
    cut.iloc[::3, 1] = np.nan
    flags = plain(500).assign(f=chance.integers(0, 2, 500), y=chance.poisson(3, 500))
    money = plain(500, price=chance.integers(1, 9_999_999, 500) / 100)
    classes, numbers = {"objective": "multi:softmax"}, {"objective": "count:poisson"}
    informative = make_classification(900, 12, n_informative=5, flip_y=0.1, random_state=1)
    return {
        "breast cancer": (BINARY, bundled(load_breast_cancer), False),
        "iris": (classes, bundled(load_iris), True),
        "wine": (classes, bundled(load_wine), True),
        "digits": (classes, bundled(load_digits), True),
        "diabetes": ({}, bundled(load_diabetes), True),
        "diabetes, absolute": ({"objective": "reg:absoluteerror"}, bundled(load_diabetes), False),
        "breast cancer, halves": (BINARY, bundled(load_breast_cancer), True),
        "friedman": ({}, made(*make_friedman1(800, noise=1, random_state=0)), True),
        "linear": ({}, made(*make_regression(500, 10, noise=5, random_state=0)), True),
        "classification": (BINARY, made(*informative), True),
        "few values": (BINARY | {"categorical_columns": "c"}, few, True),
        "skewed labels": ({}, skewed, True),
        "gaps": ({}, cut, True),
        "counts": (numbers, flags, True),
        "money": ({}, money, True),
        "sorted labels": ({}, plain(900).sort_values("y"), False),
        "sorted classes": (BINARY, binary(3_000, share=0.3).sort_values("y"), False),
        "one in ten": (BINARY, binary(share=0.1), False),
        "few positives with their weight": (BINARY | {"scale_pos_weight": 30}, binary(share=0.03), False),
        "large fractions": ({}, plain(500).assign(a=lambda frame: frame["a"] * 1.23456e9 + 0.123), True),
        "multiples of 1024": ({}, plain(500).assign(a=lambda frame: (frame["a"] * 1e5).round() * 1024), True),
        "powers of two": ({}, plain(500).assign(a=2.0 ** chance.integers(0, 40, 500)), True),
        "stored as float32": ({}, plain(500).assign(a=lambda f: (f["a"] * 1e10).astype("float32")), True),
        "a rare category": (
            {"categorical_columns": "c"},
            plain(500).assign(c=["x", "y"] * 245 + ["x", "q", "r", "s", "y"] * 2),
            True,
        ),
        "doses": ({}, plain(600).assign(y=chance.permutation(np.repeat(np.arange(30), 20))), True),
        "a constant": ({}, plain(k=1), True),
        "few rows": ({}, plain(8).assign(y=range(8), k=range(8)), False),
        "half missing": ({}, plain(500).assign(h=[None, 1.5] * 250), True),
    }


@pytest.mark.parametrize("name", clean())
def test_a_clean_table_gives_no_notice(tmp_path: Path, name: str) -> None:
    settings, frame, has_validation = clean()[name]
    train = frame[: 7 * len(frame) // 10] if has_validation else frame
    channels = {"train": parquet(train)} | (
        {"validation": parquet(frame[len(train) :])} if has_validation else {}
    )
    assert notices(tmp_path, settings, **channels) == []


def test_libsvm_whose_lines_lack_labels_or_count_from_another_index_is_noticed(tmp_path: Path) -> None:
    values = random().normal(size=(ROWS, 3)).round(3)
    pairs = [
        f"{row % 5}:{abs(a) + 0.1} {row % 5 + 1 + row % 3}:{b} 9:{c}" for row, (a, b, c) in enumerate(values)
    ]
    (said,) = notices(tmp_path / "labels", {}, train=text(*pairs))
    assert said.startswith(
        "channel train: every line begins with a label and its weight, and each label is a"
    )

    def rows(first: int) -> Source:
        return text(*(f"{a} {first}:{b} {first + 1}:{c}" for a, b, c in values))

    for train, validation, count in ((1, 0, 1), (0, 1, 1), (0, 0, 0), (1, 1, 0)):
        base = tmp_path / f"{train}{validation}"
        found = notices(base, {}, train=rows(train), validation=rows(validation))
        assert sum(said.startswith("The lowest index of channel validation is ") for said in found) == count
    assert (
        notices(
            tmp_path / "weights",
            {},
            train=text(*(f"{row % 2}:2 1:{a} 3:{b}" for row, (a, b, _) in enumerate(values))),
        )
        == []
    )


def text(*lines: str) -> Source:
    return Source({"a.libsvm": "".join(f"{line}\n" for line in lines).encode()}, "text/libsvm")


def test_a_column_without_a_name_that_is_a_feature_is_noticed(tmp_path: Path) -> None:
    frame = plain(n=np.arange(ROWS) * 7 % 100)
    for names in (["y", "a", "b", ""], ["y", "a", "b", "Unnamed: 0"]):
        (said,) = notices(tmp_path / f"{len(names[-1])}", {}, train=as_csv(frame.set_axis(names, axis=1)))
        assert said.startswith("train/data.csv: column 3 has no name, as an index that a table")


def test_weights_of_csv_in_parquet_and_columns_in_order_are_noticed(tmp_path: Path) -> None:
    (said,) = notices(tmp_path / "weights", {"csv_weights": 1}, train=parquet(plain()))
    assert said.startswith(
        "csv_weights=1 has no effect on Parquet, where the column after the label is a feature"
    )
    (said,) = notices(tmp_path / "order", {}, train=csv(plain()), validation=parquet(plain(seed=5)))
    assert said.startswith(
        "validation/data.parquet has names, and the files of train have none: its columns are"
    )


@pytest.mark.parametrize("eval_train", ["true", "false"])
def test_early_stopping_without_validation_watches_train(tmp_path: Path, eval_train: str) -> None:
    settings = {"num_round": 200, "eta": 1, "early_stopping_rounds": 3, "eval_metric": "error", **BINARY}
    frame = binary().assign(k=lambda frame: frame["y"] + random().normal(size=ROWS))
    done = job(tmp_path, {**settings, "eval_train": eval_train}, train=csv(frame))
    report = json.loads(done.output_data["metrics.json"])
    errors = report["history"]["train"]["error"]
    assert report["monitored"] == "train-error"
    assert report["best_round"] == int(np.argmin(errors)) == len(errors) - 4
    assert done.booster().num_boosted_rounds() == report["best_round"] + 1
    assert "Early stopping watches train-error" in done.log
