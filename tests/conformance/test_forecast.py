"""`smxgb check --listing`: what it says of a group of hosts, from the sizes and names of files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from tests.work import forecast

from smxgb.checking.forecast import ROUNDS
from smxgb.job import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tests.work import Checked


def check(
    base: Path, listing: Iterable[str] | None, hosts: int = 1, train: Path | None = None, **settings: object
) -> Checked:
    """Check a listing of these lines; with None, the listing is none that is there."""
    sources = Sources(settings_file(base, settings), {"train": train} if train else None)
    return forecast(base / "none", listing_file(base, listing), hosts, sources)


def listing_file(base: Path, lines: Iterable[str] | None) -> Path:
    file = base / "listing.txt"
    if lines is not None:
        file.write_text("\n".join(lines) + "\n")
    return file


def settings_file(base: Path, settings: Mapping[str, object]) -> Path | None:
    if not settings:
        return None
    file = base / "settings.json"
    file.write_text(json.dumps(settings))
    return file


def smxgb(base: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "smxgb", *map(str, arguments)],
        env={**os.environ, "SAGEMAKER_BASE_DIR": str(base / "none"), "NVIDIA_VISIBLE_DEVICES": "none"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def said(done: Checked | subprocess.CompletedProcess[str], subject: str) -> str:
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith(f"{subject}: ")]
    return line.removeprefix(f"{subject}: ")


def parts(count: int, size: int, name: str = "train/part-{:05}.csv") -> list[str]:
    return [f"{size} {name.format(number)}" for number in range(count)]


def test_a_terabyte_on_25_hosts_has_a_plan(tmp_path: Path) -> None:
    done = check(tmp_path, parts(10_000, 104_000_000), 25)
    assert said(done, "Mode") == "collective (25 hosts). Device: cpu."
    assert said(done, "Listing") == "10,000 files of csv, 969 GiB."
    assert said(done, "Rows").startswith("about 3,387,622,150 with 28 columns, assumed to be like the rows")
    share = said(done, "ShardedByS3Key")
    assert share.startswith("400 files a host, 39 GiB to 39 GiB, if SageMaker deals out the sorted keys in")
    assert "1.00 times the mean" in share
    assert said(done, "Memory of the fullest host").startswith(
        "about 14 GiB (between 9.9 GiB and 18 GiB) for a quantile"
    )
    assert "39 GiB of files in File mode, and 15 GiB of parsed rows." in said(
        done, "Disk of the fullest host"
    )
    assert said(done, "Time").startswith(
        "2 min to 6 min for 100 rounds with 16 threads a host. Assumed of a core: 170 to 220 MB/s read"
    )


@pytest.mark.parametrize(
    ("rows", "rounds", "measured"), [(1_000_000, 20, 6.1), (5_000_000, 10, 22.4)], ids=["1M", "5M"]
)
def test_the_time_of_a_real_job_lies_within_the_forecast(
    tmp_path: Path, rows: int, rounds: int, measured: float
) -> None:
    """The seconds are those of whole jobs of `benchmarks/whole_job.py` with CSV, on two quiet cores."""
    done = check(tmp_path, parts(1, rows * 307), num_round=rounds, nthread=2)
    assert f"about {rows:,} with 28 columns" in done.stdout
    fastest, slowest = map(int, re.findall(r"(\d+) s", said(done, "Time"))[:2])
    assert fastest <= measured <= slowest


def test_a_host_needs_less_memory_and_time_where_more_hosts_share_the_rows(tmp_path: Path) -> None:
    seconds, memory = [], []
    for hosts in (5, 25):
        done = check(tmp_path, parts(100, 100_000_000), hosts, nthread=4, num_round=10)
        seconds.append(int(re.findall(r"(\d+) s", said(done, "Time"))[0]))
        memory.append(int(re.findall(r"about (\d+) MiB", said(done, "Memory of the fullest host"))[0]))
    # Each number is rounded to a whole second or MiB. The histograms of a tree, 7 MiB, are those of all rows.
    assert seconds[0] == pytest.approx(5 * seconds[1], abs=3)
    assert memory[0] - 7 == pytest.approx(5 * (memory[1] - 7), abs=3)


def test_lines_of_the_aws_cli_are_taken_and_what_is_no_data_is_skipped(tmp_path: Path) -> None:
    lines = [
        "2026-01-05 10:00:00       3000 data/train/part 1.parquet",
        "2026-01-05 10:00:00       1000 data/train/part 2.parquet",
        "2026-01-05 10:00:00          0 data/train/_SUCCESS",
        "2026-01-05 10:00:00        700 data/train/_delta_log/0.json",
        "",
    ]
    done = check(tmp_path, lines, 2)
    assert said(done, "Listing") == "2 files of parquet, 3.9 KiB. Skipped: 2 files without data."
    share = said(done, "ShardedByS3Key")
    assert share.startswith("1 file a host, 1.0 KiB to 2.9 KiB")
    assert "1.50 times the mean" in share


def test_hosts_that_get_no_file_are_counted(tmp_path: Path) -> None:
    done = check(tmp_path, parts(3, 10_000), 5)
    assert "2 of the 5 hosts get no file: use fewer hosts or more files, or FullyReplicated." in done.stdout
    done = check(tmp_path, ["1000 a.libsvm"], 5)
    assert "4 of the 5 hosts get no file: use fewer hosts or more files.\n" in done.stdout


def test_rows_of_ones_own_are_measured(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    frame = pd.DataFrame(np.random.default_rng(1).integers(0, 10, (5000, 11)))
    frame.to_csv(folder / "a.csv", index=False, header=False)
    size = (folder / "a.csv").stat().st_size
    listing = listing_file(tmp_path, parts(100, size))
    settings = settings_file(tmp_path, {"num_round": 7, "nthread": 3})
    options = ("--listing", listing, "--hosts", 4, "--train", folder, "--hyperparameters", settings)
    done = smxgb(tmp_path, "check", *options)
    assert said(done, "Rows") == (
        "about 500,000 with 10 columns, if all files are like those of --train, with "
        f"{size / 5000:.0f} bytes a row."
    )
    assert "for 7 rounds with 3 threads a host" in said(done, "Time")


def test_a_packed_sample_is_weighed_as_packed_files_are(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    frame = pd.DataFrame(np.random.default_rng(1).random((5000, 5)))
    frame.to_csv(folder / "a.csv.gz", index=False, header=False)
    size = (folder / "a.csv.gz").stat().st_size
    lines = [f"{size} part-{number}.csv.gz" for number in range(100)]
    # Without settings, and on a machine that has no GPU: neither matters to what the sample shows.
    done = check(tmp_path, lines, train=folder)
    assert said(done, "Rows").startswith("about 500,000 with 4 columns")
    assert f"for {ROUNDS} rounds" in said(done, "Time")
    done = check(tmp_path, lines, train=folder, num_round=7, device="cuda")
    assert "The sample, on this machine:" in done.stdout
    assert said(done, "Rows").startswith("about 500,000 with 4 columns")


def test_options_that_mean_nothing_alone_are_refused(tmp_path: Path) -> None:
    done = smxgb(tmp_path, "check", "--hosts", 4, "--validation", tmp_path)
    assert done.returncode == 2
    assert "1. --hosts goes with --listing" in done.stderr
    assert "2. --validation goes with --train" in done.stderr


def test_compressed_files_count_as_the_text_they_stand_for(tmp_path: Path) -> None:
    rows = []
    for name in ("{}.csv", "{}.csv.gz"):
        line = said(check(tmp_path, parts(10, 30_700_000, name), 2), "Rows")
        rows.append(int(re.findall(r"about ([\d,]+) ", line)[0].replace(",", "")))
    assert rows == [1_000_000, 2_300_000]


def test_the_settings_decide_who_trains_on_what(tmp_path: Path) -> None:
    listing = parts(100, 10_000_000)
    gpus = check(tmp_path, listing, 2, num_round=5, use_dask_gpu_training="true", workers_per_host=4)
    assert said(gpus, "Mode") == "dask (4 GPUs). Device: cuda."
    assert "not measured" in said(gpus, "Memory of the fullest host's GPUs together")
    assert said(gpus, "Time").startswith("no forecast")
    exact = check(tmp_path, listing, 2, num_round=5, tree_method="exact")
    assert exact.returncode == 2
    assert exact.stderr.startswith("UserError: tree_method=exact works with one host only")


MISTAKES = {
    "a folder": (["PRE train/", "10 a.csv"], "line 1: 'PRE train/' is not a size in bytes and a path."),
    "a size in words": (
        ["10 a.csv", "104MB b.csv"],
        "line 2: '104MB b.csv' is not a size in bytes and a path",
    ),
    "a file twice": (["10 a.csv", "12 a.csv"], "line 2: '12 a.csv' names a file for the second time."),
    "two types": (
        ["10 a.csv", "9 b.parquet"],
        "holds csv (a.csv) and parquet (b.parquet): a channel's files",
    ),
    "no type": (["10 part-0000"], "'part-0000' has no extension that tells its type, as one of .csv, .tsv,"),
    "no data": (["0 a.csv", "10 _SUCCESS"], "names no data file: write one with `aws s3 ls --recursive`"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_listing_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    lines, words = MISTAKES[name]
    done = check(tmp_path, lines, 2)
    assert done.returncode == 2
    assert done.stderr.startswith(f"UserError: {tmp_path}/listing.txt")
    assert words in done.stderr


def test_many_wrong_lines_are_counted(tmp_path: Path) -> None:
    done = check(tmp_path, [f"line {number}" for number in range(20)], 2)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "6. 15 more lines are wrong."


@pytest.mark.parametrize(
    ("listing", "hosts", "words"),
    [(None, 2, "there is no file "), (["10 a.csv"], 0, "--hosts 0 is not allowed: give the number of")],
)
def test_a_listing_that_is_not_there_and_no_host_are_mistakes(
    tmp_path: Path, listing: list[str] | None, hosts: int, words: str
) -> None:
    done = check(tmp_path, listing, hosts)
    assert done.returncode == 2
    assert done.stderr.startswith(f"UserError: {words}")
