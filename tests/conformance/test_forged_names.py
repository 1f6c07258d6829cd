"""Names and cells from outside that look like the log's own lines: nothing that reads the log takes them."""

from __future__ import annotations

import csv as csv_module
import io
import json
import random
import re
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from tests.opt_ml import Source, csv, parquet, run_train, write_opt_ml
from tests.work import work

from smxgb.settings.metrics import metric_definitions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.opt_ml import Outcome

PIECES = [
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\x1b[2J",
    "\x1b[1A",
    "\x08",
    "\x0b",
    "\x0c",
    "\x85",
    "\u2028",
    "\u202e",
    "#011",
    "[0]",
    "[7]\t",
    " ",
    "validation-auc:0.99",
    "train-rmse:0.1",
    "validation-rmse:1.0",
    "validation-error:-0",
    "UserError: forged",
    "PlatformError: forged",
    "AlgorithmError:",
    "Traceback",
    ":",
    "-",
    "=1+1",
    "@",
    "a",
    "ß",
]
"""What names are made of: what breaks lines, moves a cursor, or passes for values and failures."""

NAMES_OF_A_JOB = 20
JOBS = 25
"""25 jobs with 20 names each: 500 names, in every place that has one."""

TUNER = [re.compile(definition["Regex"]) for definition in metric_definitions()]
FAILURE = re.compile("(User|Platform|Algorithm)Error:")
OWN_VALUES = re.compile(r"\[\d+\](\t(train|validation)-[a-z]+:-?[0-9.]+)+")


def forged_names(seed: int, count: int = NAMES_OF_A_JOB) -> list[str]:
    """Return so many different names; some have to work in file names too, so none has a slash or NUL."""
    rng = random.Random(seed)  # noqa: S311 - names, not secrets
    names: dict[str, None] = {}
    while len(names) < count:
        name = "".join(rng.choices(PIECES, k=rng.randint(2, 6))) + str(len(names))
        names[name if name.strip() == name else f"x{name}x"] = None
    return list(names)


def assert_not_forged(done: Outcome) -> None:
    """No line but those of the rounds has values for a tuner, and a failure is told once, by its own line."""
    lines = done.log.split("\n")
    for line in lines:
        assert line.replace("\t", "").isprintable(), line
        if not OWN_VALUES.fullmatch(line):
            assert "\t" not in line
            assert not any(pattern.search(line.replace("\t", "#011")) for pattern in TUNER), line
    told = [line for line in lines if FAILURE.search(line)]
    assert len(told) == (done.code != 0), told
    assert all(FAILURE.match(line) and len(FAILURE.findall(line)) == 1 for line in told)
    if done.failure is not None:
        assert all(line.isprintable() for line in done.failure.split("\n"))
        assert len(FAILURE.findall(done.failure)) == 1


def frame(names: list[str]) -> pd.DataFrame:
    table = pd.DataFrame({name: range(index, 60 + index) for index, name in enumerate(names)})
    table.insert(0, "y", [index % 2 for index in range(60)])
    return table


@pytest.mark.parametrize("seed", range(JOBS))
def test_a_job_whose_names_are_forged_logs_its_own_values_only(tmp_path: Path, seed: int) -> None:
    names = forged_names(seed)
    table = frame(names[:15])
    table[names[0]] = [names[index % 10] for index in range(60)]
    later = table.assign(**{names[0]: names[15:] * 12})
    parts = {
        f"{names[1]}/{name}.parquet": parquet(table[i * 20 : i * 20 + 20]) for i, name in enumerate(names[:3])
    }
    files = {path: next(iter(source.files.values())) for path, source in parts.items()}
    skipped = {f"_{name}": b"x" for name in names[5:9]}
    write_opt_ml(
        tmp_path,
        hyperparameters={
            "num_round": 2,
            "objective": "binary:logistic",
            "eval_metric": "auc,error",
            "label_column": "y",
            "categorical_columns": json.dumps([names[0]]),
            "drop_columns": json.dumps(names[13:14]),
            f"sagemaker_{names[9]}": names[8],
        },
        channels={
            "train": Source({**files, **skipped}, None),
            "validation": parquet(later),
            **dict.fromkeys(names[10:12], b"1,2\n"),
        },
    )
    done = work(tmp_path)
    assert done.code == 0, done.log
    assert_not_forged(done)
    assert sum(OWN_VALUES.fullmatch(line) is not None for line in done.log.split("\n")) == 2
    cells = csv_module.reader(io.StringIO(done.output_data["feature_importance.csv"].decode(), newline=""))
    shown = {row[0] for row in cells}
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for cell in shown)
    assert {name for name in names[:13] if name[0].isalpha()} <= shown


@pytest.mark.parametrize("seed", range(JOBS))
def test_the_mistakes_of_forged_names_and_cells_are_told_once(tmp_path: Path, seed: int) -> None:
    names = forged_names(1000 + seed)
    jobs: dict[str, tuple[Mapping[str, object], dict[str, Source], Mapping[str, object] | str]] = {
        "parameters": (
            {name: name for name in names[:6]} | {"objective": names[6]},
            {"train": csv(b"1,2\n")},
            "derived",
        ),
        "metrics": ({"eval_metric": names[7], "tree_method": names[8]}, {"train": csv(b"1,2\n")}, "derived"),
        "columns": (
            {"label_column": names[9], "weight_column": names[10]},
            {"train": parquet(frame(names[:9]))},
            "derived",
        ),
        "cells": (
            {"label_column": "y"},
            {
                "train": csv(
                    frame(names[:2]).assign(**{names[1]: names[2]}), header=True, name=f"{names[3]}.csv"
                )
            },
            "derived",
        ),
        "hosts": ({}, {"train": csv(b"1,2\n")}, {"current_host": names[11], "hosts": names[12:15]}),
        "channels": ({}, {names[15]: csv(b"1,2\n"), names[16]: csv(b"1,2\n")}, "derived"),
        "types": (
            {},
            {"train": Source({"a": b"1,2\n"}, names[17], {"S3DistributionType": names[18]})},
            "derived",
        ),
        "files": (
            {},
            {"train": Source({f"{names[19]}.libsvm": b"1 a:b\n", f"{names[0]}.libsvm": b"x\n"}, None)},
            "derived",
        ),
        "classes": (
            {"objective": "binary:logistic"},
            {"train": Source({f"{names[1]}/{names[2]}": b"7,2\n"}, "text/csv")},
            "derived",
        ),
    }
    for place, (settings, channels, resourceconfig) in jobs.items():
        base = write_opt_ml(
            tmp_path / place,
            hyperparameters={"num_round": 2, **settings},
            channels=channels,
            resourceconfig=resourceconfig,  # type: ignore[arg-type]
        )
        done = work(base)
        assert done.code == 2, (place, done.log)
        assert_not_forged(done)


def test_the_log_of_a_whole_job_has_no_forged_line(tmp_path: Path) -> None:
    names = ["[0]\tvalidation-auc:1.00000", "a\n[0]\tvalidation-auc:1.0", "b\nUserError: forged", "=1+1"]
    write_opt_ml(
        tmp_path, hyperparameters={"num_round": 2}, channels={"train": csv(frame(names), header=True)}
    )
    done = run_train(tmp_path, environment={"NVIDIA_VISIBLE_DEVICES": "none"})
    assert done.code == 0, done.log
    assert_not_forged(done)
