"""`smxgb check`: what it says of a job before it runs, and its exit code."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from tests import mistakes
from tests.opt_ml import Source, csv, parquet, write_opt_ml
from tests.recordio import framed, record, tensor
from tests.work import dry_run, work

if TYPE_CHECKING:
    from pathlib import Path


def table() -> pd.DataFrame:
    frame = load_diabetes(as_frame=True).frame
    return frame[["target", *frame.columns[:-1]]].astype(np.float32)


def check(base: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "smxgb", "check", *map(str, arguments)],
        env={**os.environ, "SAGEMAKER_BASE_DIR": str(base), "NVIDIA_VISIBLE_DEVICES": "none"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def settings_file(folder: Path, **settings: object) -> Path:
    path = folder / "settings.json"
    path.write_text(json.dumps(settings))
    return path


@pytest.mark.parametrize("form", [lambda frame: csv(frame, header=True), parquet])
def test_a_good_job_is_described_and_nothing_is_written(tmp_path: Path, form: object) -> None:
    rows = table()
    channels = {"train": form(rows[:300]), "validation": form(rows[300:])}  # type: ignore[operator]
    write_opt_ml(tmp_path, hyperparameters={"num_round": 5}, channels=channels)
    before = set(tmp_path.rglob("*"))
    done = check(tmp_path)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert "Mode: single (one host). Device: cpu (no GPU is there).\n" in done.stdout
    assert re.search(r"^Workers: 1, on this host, each with \d+ threads\.$", done.stdout, re.MULTILINE)
    rows_line = re.search(r"^Channel train: (about )?(\d+) rows and 10 columns\.$", done.stdout, re.MULTILINE)
    assert rows_line
    assert (rows_line[1], int(rows_line[2])) == (None, 300)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Matrix: quantile, about "))
    memory = re.fullmatch(
        r".* (\d+) MiB \(between (\d+) and (\d+) MiB\) of the [0-9.]+ GiB of memory that are free\.", line
    )
    assert memory
    about, low, high = map(int, memory.groups())
    assert low <= about <= high
    assert done.stdout.splitlines()[-1].startswith("Nothing was found that would stop the job.")
    assert set(tmp_path.rglob("*")) == before


def test_a_file_of_both_channels_is_noticed_before_anything_is_trained(tmp_path: Path) -> None:
    rows = csv(table())
    write_opt_ml(tmp_path, hyperparameters={"num_round": 5}, channels={"train": rows, "validation": rows})
    done = check(tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Notice: "))
    assert " are the same file. " in line


def test_the_memory_is_that_of_one_of_the_workers_that_share_the_rows(tmp_path: Path) -> None:
    rows = pd.concat([table()] * 1000).astype(np.float32)
    settings = {"num_round": 5, "use_dask_gpu_training": "true", "device": "cpu"}
    needed = {}
    for workers in (1, 2):
        base = tmp_path / str(workers)
        chosen = {**settings, "workers_per_host": workers}
        write_opt_ml(base, hyperparameters=chosen, channels={"train": parquet(rows)})
        done = dry_run(base)
        assert done.returncode == 0, done.stderr
        assert f"Workers: {workers}, on this host, each with " in done.stdout
        [found] = re.findall(r"Matrix: quantile, about (\d+) MiB", done.stdout)
        needed[workers] = int(found)
    assert needed[2] < needed[1]


@pytest.mark.parametrize("form", [lambda frame: csv(frame, header=True), parquet])
def test_the_rows_of_a_large_file_are_judged_by_the_first(tmp_path: Path, form: object) -> None:
    rows = pd.concat([table()[["target", "age"]]] * 300, ignore_index=True)
    write_opt_ml(tmp_path, hyperparameters={"num_round": 5}, channels={"train": form(rows)})  # type: ignore[operator]
    said = dry_run(tmp_path).stdout
    found = re.search(r"^Channel train: (about )?([0-9,]+) rows and 1 columns\.$", said, re.MULTILINE)
    assert found
    assert bool(found[1]) == ("delimiter" in said)
    assert int(found[2].replace(",", "")) == pytest.approx(len(rows), rel=0.02)


SPARSE = [
    Source({"a": b"1 0:1 1:2 2:3\n0 0:2 1:3\n" * 9}, "text/libsvm"),
    Source({"a": b"1 1:1 2:2 3:3\n0 1:2 2:3\n" * 9}, "text/libsvm"),
    Source(
        {"a": framed([record(tensor([1, 2], keys=[0, 1], shape=[3]), tensor([1]))] * 9)},
        "application/x-recordio-protobuf",
    ),
    # Of the first batch, and the next one, no row has the last feature.
    Source({"a": b"1 1:1 2:2\n" * 200_000 + b"0 3:2\n"}, "text/libsvm"),
]


@pytest.mark.parametrize("source", SPARSE)
def test_the_features_of_sparse_rows_are_counted_as_the_job_counts_them(
    tmp_path: Path, source: Source
) -> None:
    for directions, code in (("(1,0,1)", 0), ("(1,0,1,0)", 2)):
        settings = {"num_round": 1, "monotone_constraints": directions}
        base = tmp_path / directions
        write_opt_ml(base, hyperparameters=settings, channels={"train": source})
        done = dry_run(base)
        if code == 0 or "at least 2 columns" not in done.stdout:
            assert done.returncode == code, done.stderr
        assert work(base).code == code


def test_many_classes_in_a_compressed_file_are_no_more_than_there_are_rows(tmp_path: Path) -> None:
    rows = b"".join(b"%d,%d\n" % (label, label * 7 % 11) for label in range(300))
    write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 1, "objective": "multi:softmax"},
        channels={"train": Source({"a.csv.gz": gzip.compress(b"0,1\n" * 70_000 + rows)}, "text/csv")},
    )
    done = dry_run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert work(tmp_path).code == 0


def test_a_laptop_needs_a_file_and_a_folder_only(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    table().to_csv(folder / "a.csv", index=False)
    settings = settings_file(tmp_path, num_round=5, tree_method="exact")
    done = check(tmp_path / "nothing", "--hyperparameters", settings, "--train", folder)
    assert done.returncode == 0, done.stderr
    assert "Matrix: whole, about " in done.stdout


def test_settings_can_be_checked_alone(tmp_path: Path) -> None:
    done = check(tmp_path / "nothing", "--hyperparameters", settings_file(tmp_path, num_round=5))
    assert done.returncode == 0
    assert done.stdout.startswith("The settings alone show no mistake.")


def test_a_mistake_in_the_settings_is_found_without_data(tmp_path: Path) -> None:
    settings = settings_file(tmp_path, num_round="ten", learnin_rate=0.1)
    done = check(tmp_path / "nothing", "--hyperparameters", settings)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "UserError: 2 mistakes. 1. num_round='ten' is not allowed: it must be a whole number, 1 or more.",
        "2. learnin_rate is not a hyperparameter: did you mean learning_rate?",
    ]


def test_a_file_in_place_of_a_folder_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    table().to_csv(file, index=False)
    done = check(
        tmp_path / "nothing", "--hyperparameters", settings_file(tmp_path, num_round=5), "--train", file
    )
    assert done.returncode == 2
    assert done.stderr == f"UserError: --train needs a folder, and {file} is a file: give {tmp_path}.\n"


def test_a_file_of_settings_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = check(tmp_path / "nothing", "--hyperparameters", tmp_path / "no.json")
    assert done.returncode == 2
    assert done.stderr.startswith(f"UserError: there is no file {tmp_path}/no.json: ")


def test_all_that_the_first_rows_show_is_reported_together(tmp_path: Path) -> None:
    rows = b"1,2,3\n0,old,4\n1,5,6\n"
    write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 5, "monotone_constraints": "(1,0,1)", "objective": "binary:logistic"},
        channels={"train": rows, "validation": b"1,2,3\n2,3,4\n"},
    )
    done = check(tmp_path)
    assert done.returncode == 2
    first, second, third = done.stderr.splitlines()
    assert first.startswith(
        "UserError: 3 mistakes. 1. train/data.csv, line 2, column 1: 'old' is not a number."
    )
    labels, constraints = sorted(line.partition(". ")[2] for line in (second, third))
    assert labels.startswith("channel validation has the labels 1, 2, but for objective=binary:logistic")
    assert constraints.startswith("monotone_constraints has 3 directions for 2 features")


def test_labels_of_one_class_are_said_before_anything_is_trained(tmp_path: Path) -> None:
    write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 5, "objective": "binary:logistic", "eval_metric": "auc"},
        channels={"train": b"1,2,3\n1,3,4\n"},
    )
    done = dry_run(tmp_path)
    assert done.returncode == 0
    assert "Every row of train has the label 1: there is nothing to learn.\n" in done.stdout


def test_a_channel_without_rows_is_refused(tmp_path: Path) -> None:
    write_opt_ml(tmp_path, hyperparameters={"num_round": 5}, channels={"train": b"label,a\n"})
    done = dry_run(tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("UserError: channel train has no rows")


def test_a_job_that_does_not_fit_is_refused_with_the_numbers(tmp_path: Path) -> None:
    write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 5, "objective": "multi:softprob", "num_class": 2_000_000_000},
        channels={"train": table().assign(target=0)},
    )
    done = dry_run(tmp_path)
    assert done.returncode == 3
    assert re.search(r"needs about [0-9,]+ MiB of memory, .*and [0-9,]+ MiB are free", done.stderr)


NO_ROWS = mistakes.table({"label": [], "a": []})

SAME = {
    "column names and no row": mistakes.Mistake(
        "UserError: channel train has no rows, its files hold column names at most: check its S3 address "
        "and what wrote the files.",
        train=b"label,a,b\n",
    ),
    "a Parquet file without rows": mistakes.Mistake(
        "UserError: channel train has no rows, its files hold column names at most: check its S3 address "
        "and what wrote the files.",
        train=Source({"a.parquet": NO_ROWS}, "application/x-parquet"),
    ),
    "a validation channel with column names and no row": mistakes.Mistake(
        "UserError: channel validation has no rows, its files hold column names at most: check its S3 "
        "address and what wrote the files.",
        train=mistakes.NAMED,
        validation=b"label,age,height\n",
    ),
    "no row with a label": mistakes.Mistake(
        "UserError: channel train: all 2 rows were left out, for none has a number as its label "
        "(invalid_label=drop): check label_column.",
        {"invalid_label": "drop"},
        b"label,a,b\nx,1,2\ny,2,3\n",
    ),
    "a spool folder that is not there": mistakes.Mistake(
        "UserError: spool_dir='/no/such/folder' is no folder that can be written: give one that exists, "
        "or leave it out.",
        {"spool_dir": "/no/such/folder"},
    ),
    "labels, constraints and settings": mistakes.Mistake(
        "UserError: 2 mistakes. 1. monotone_constraints: there is no feature 'weight'; did you mean "
        "'height'?",
        {"objective": "reg:gamma", "monotone_constraints": '{"weight": 1}'},
        mistakes.NAMED,
    ),
    "more columns than a table can have": mistakes.Mistake(
        "UserError: train/data.csv has 100,001 columns, and a table can have 100,000 at most: check that "
        "each record ends with a line end.",
        train=b",".join([b"1"] * 100_001),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_wrong_is_said_by_the_check_in_the_words_of_the_job(name: str, tmp_path: Path) -> None:
    mistake = SAME[name]
    mistakes.assert_fails(mistake, tmp_path)
    done = dry_run(tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == mistake.says


UNREADABLE = {
    "labels of text": (b"label,a,b\ncat,1,2\ndog,2,3\n", "text/csv"),
    "a feature of text": (b"label,a,b\n0,red,2\n1,blue,3\n", "text/csv"),
    "an index of text": (b"1 a:3\n0 1:2\n", "text/libsvm"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_rows_that_cannot_be_read_are_all_that_is_said_of_classes_to_be_counted(
    name: str, tmp_path: Path
) -> None:
    content, content_type = UNREADABLE[name]
    write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 2, "objective": "multi:softprob"},
        channels={"train": Source({"data": content}, content_type)},
    )
    job = work(tmp_path)
    assert job.failure is not None
    assert job.failure.startswith("UserError: train/data, line ")
    done = dry_run(tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"{job.failure}\n"
    assert "Matrix: " not in done.stdout


@pytest.mark.parametrize("target", ["/no/such/file", "data.csv"])
def test_a_link_that_leads_nowhere_is_one_sentence(tmp_path: Path, target: str) -> None:
    write_opt_ml(tmp_path, hyperparameters={"num_round": 2}, channels={"train": mistakes.ROWS})
    data = tmp_path / "input/data/train/data.csv"
    data.unlink()
    data.symlink_to(target)
    done = dry_run(tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"data.csv is a link to {target}, which is not there" in done.stderr
