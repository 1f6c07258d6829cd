"""Jobs that go on from a model: the channel `model` of SageMaker's `model_uri`."""

from __future__ import annotations

import io
import pickle
import re
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xgboost as xgb
from sklearn.datasets import load_breast_cancer, load_diabetes
from tests.opt_ml import Source, csv, parquet, write_opt_ml
from tests.work import dry_run, work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pandas as pd
    from tests.opt_ml import Outcome

SETTINGS: Mapping[str, object] = {"max_depth": 3, "subsample": 0.7, "seed": 3, "nthread": 1}
CLASSES: dict[str, Any] = {"objective": "binary:logistic"}


def cancer() -> pd.DataFrame:
    rows = load_breast_cancer(as_frame=True).frame
    return rows[["target", *rows.columns.drop("target")]].sample(frac=1, random_state=0)


def model(content: bytes, name: str = "xgboost-model") -> Source:
    return Source({name: content}, "application/x-sagemaker-model")


def archived(content: bytes, name: str = "xgboost-model") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def train(
    base: Path, base_model: Source | None = None, rows: Source | None = None, **settings: object
) -> Outcome:
    channels = {"train": rows or csv(cancer())}
    if base_model:
        channels["model"] = base_model
    write_opt_ml(base, hyperparameters={**SETTINGS, **settings}, channels=channels)
    return work(base)


def trained(base: Path, rows: Source | None = None, **settings: object) -> bytes:
    done = train(base, None, rows, **settings)
    assert done.model is not None, done.log
    return done.model


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(
    "pack",
    [
        model,
        lambda content: model(archived(content), "model.tar.gz"),
        lambda content: model(archived(content, "./xgboost-model"), "output/model.tar.gz"),
        lambda content: model(bytes(xgb.Booster(model_file=bytearray(content)).save_raw("json"))),
    ],
    ids=["file", "archive", "archive in a folder", "JSON"],
)
def test_ten_rounds_and_ten_more_are_twenty_in_one_go(
    tmp_path: Path, pack: Callable[[bytes], Source], *, header: bool
) -> None:
    rows = csv(cancer(), header=header)
    first = train(tmp_path / "first", None, rows, num_round=10, **CLASSES)
    assert first.model is not None
    second = train(tmp_path / "second", pack(first.model), rows, num_round=10)
    whole = train(tmp_path / "whole", None, rows, num_round=20, **CLASSES)
    assert second.model == whole.model is not None
    numbers = [
        re.findall(r"^\[(\d+)\]\t(.*)$", outcome.log, re.MULTILINE) for outcome in (first, second, whole)
    ]
    assert numbers[0] + numbers[1] == numbers[2]
    assert "training goes on from this model: 10 rounds, binary:logistic, 30 features" in second.log


def test_classes_and_the_kind_of_booster_come_from_the_model(tmp_path: Path) -> None:
    rows = cancer()
    rows["target"] += (rows["mean radius"] > 15).astype(int)
    classes: dict[str, Any] = {"objective": "multi:softprob", "num_class": 4}
    first = trained(tmp_path / "first", csv(rows), num_round=2, **classes)
    second = train(tmp_path / "second", model(first), csv(rows), num_round=2)
    assert second.model == trained(tmp_path / "whole", csv(rows), num_round=4, **classes)
    linear: dict[str, Any] = {"booster": "gblinear", "updater": "coord_descent", "subsample": 1}
    first = trained(tmp_path / "linear", num_round=2, **linear)
    second = train(tmp_path / "more", model(first), num_round=2, updater="coord_descent", subsample=1)
    assert second.model == trained(tmp_path / "four", num_round=4, **linear)


def test_update_refreshes_the_trees_of_the_model_with_new_rows(tmp_path: Path) -> None:
    old, new = csv(cancer()[:300]), cancer()[300:]
    first = trained(tmp_path / "first", old, num_round=4, **CLASSES)
    update: dict[str, Any] = {"process_type": "update", "updater": "refresh", "num_round": 4, "subsample": 1}
    done = train(tmp_path / "second", model(first), csv(new), **update)
    plain = xgb.train(
        {**SETTINGS, **CLASSES, "subsample": 1, "process_type": "update", "updater": "refresh"},
        xgb.DMatrix(new.iloc[:, 1:].to_numpy("float32"), new["target"]),
        4,
        xgb_model=xgb.Booster(model_file=bytearray(first)),
    )
    np.testing.assert_allclose(
        done.predict(new.iloc[:, 1:]),
        plain.inplace_predict(new.iloc[:, 1:].to_numpy("float32")),
        rtol=1e-5,
    )
    wrong = train(tmp_path / "wrong", model(first), csv(new), **{**update, "num_round": 3})
    assert "process_type=update changes each round of channel 'model': xgboost-model, which has 4" in str(
        wrong.failure
    )


def test_a_checkpoint_of_the_job_wins_over_its_model(tmp_path: Path) -> None:
    first = trained(tmp_path / "first", num_round=3, **CLASSES)
    for total in (2, 4):
        base = write_opt_ml(
            tmp_path / f"{total}",
            hyperparameters={**SETTINGS, "num_round": total},
            channels={"train": csv(cancer()), "model": model(first)},
            checkpointconfig={"LocalPath": str(tmp_path / "points")},
        )
        done = work(base)
    assert "5 rounds are done" in done.log
    assert done.model == trained(tmp_path / "whole", num_round=7, **CLASSES)


def regression() -> bytes:
    x, y = load_diabetes(return_X_y=True)
    return bytes(xgb.train({"base_score": 0.25}, xgb.DMatrix(x, y), 2).save_raw("ubj"))


RENAMED = cancer().rename(columns={"mean radius": "radius"})


@pytest.mark.parametrize(
    ("settings", "rows", "said"),
    [
        (
            {"objective": "binary:hinge"},
            csv(cancer()),
            "objective='binary:hinge' differs from the binary:logistic of",
        ),
        ({"booster": "gblinear"}, csv(cancer()), "booster='gblinear' differs from the gbtree of"),
        ({"base_score": 0.1}, csv(cancer()), "base_score='0.1' differs from the 0."),
        ({}, csv(cancer().iloc[:, :-1]), "has 30 features and the rows have 29: give rows with the features"),
        ({}, parquet(RENAMED), "the rows lack its features 'mean radius', and have 'radius' instead"),
        (
            {},
            parquet(cancer().iloc[:, [0, 2, 1, *range(3, 31)]]),
            "its features are in another order, number 0",
        ),
    ],
)
def test_what_differs_from_the_model_is_named(
    tmp_path: Path, settings: Mapping[str, object], rows: Source, said: str
) -> None:
    settings = {"label_column": "target", **settings} if "0.parquet" in rows.files else settings
    first = trained(tmp_path / "first", csv(cancer(), header=True), num_round=2, **CLASSES)
    done = train(tmp_path / "second", model(first), rows, num_round=2, **settings)
    assert done.code == 2
    assert said in str(done.failure)
    assert "channel 'model': xgboost-model" in str(done.failure)


def test_other_categories_than_the_models_are_named(tmp_path: Path) -> None:
    rows = cancer()[["target", "mean radius"]].assign(colour=["red", "blue"] * 284 + ["red"])
    settings: dict[str, Any] = {
        **CLASSES,
        "num_round": 2,
        "categorical_columns": "colour",
        "label_column": "target",
    }
    first = trained(tmp_path / "first", csv(rows, header=True), **settings)
    again = train(tmp_path / "same", model(first), csv(rows, header=True), **settings)
    assert again.model == trained(tmp_path / "whole", csv(rows, header=True), **{**settings, "num_round": 4})
    other = rows.assign(colour=["green", "blue"] * 284 + ["red"])
    done = train(tmp_path / "other", model(first), csv(other, header=True), **settings)
    assert (
        "its feature 'colour' has the categories 'blue', 'red', and in the rows it has the categories"
        in str(done.failure)
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            model(pickle.dumps({"a": 1})),
            "is a pickled model, which is not opened, for a pickle can run any code. Unpickle it",
        ),
        (
            model(b"binf\x00\x01"),
            "is a binary model of XGBoost up to 1.7, which later versions can't read. Load it",
        ),
        (model(b'{"learner": 1'), "is no model of XGBoost, or is damaged: write the model again"),
        (model(archived(b"", "other"), "model.tar.gz"), "holds no xgboost-model: give the model.tar.gz"),
        (model(b"no archive", "model.tar.gz"), "can't be unpacked"),
        (
            model(b"text", "notes.txt"),
            "must hold one xgboost-model, or one archive (.tar.gz) with it, and holds notes.txt",
        ),
    ],
)
def test_what_is_no_model_is_refused_with_how_to_convert_it(
    tmp_path: Path, source: Source, said: str
) -> None:
    done = train(tmp_path, source, num_round=1)
    assert done.code == 2
    assert said in str(done.failure)


def test_a_check_says_that_training_goes_on_and_what_differs(tmp_path: Path) -> None:
    for name, settings in (("good", {}), ("bad", {"objective": "binary:logistic"})):
        base = write_opt_ml(
            tmp_path / name,
            hyperparameters={"num_round": 1, **settings},
            channels={"train": csv(load_diabetes(as_frame=True).frame), "model": model(regression())},
        )
        done = dry_run(base)
        assert (done.returncode == 0) == (name == "good"), done.stderr
        assert "differs from the reg:squarederror" in done.stderr or "goes on from this model" in done.stdout
