"""Several hosts train one model: which rows are read, what all must agree on, and what the model is worth."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.metrics import accuracy_score, log_loss
from tests.distributed.hosts import hosts_of
from tests.opt_ml import Outcome, Source, csv, parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = {
    "objective": "binary:logistic",
    "num_round": 10,
    "max_depth": 3,
    "eval_metric": "logloss,accuracy",
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    features = rng.normal(size=(3000, 5)).astype(np.float32)
    score = features[:, 0] - 2 * features[:, 1] + np.abs(features[:, 2])
    label = (score + rng.logistic(size=3000) > 0.8).astype(np.float32)
    return pd.DataFrame({"y": label, **{f"x{index}": features[:, index] for index in range(5)}})


def parts(table: pd.DataFrame, *sizes: int, write: Callable[..., Source] = csv) -> Source:
    """Return a channel with a file for each size, of the table's rows in order."""
    files: dict[str, bytes] = {}
    begin = 0
    for number, size in enumerate(sizes):
        source = write(table[begin : begin + size], name=f"part-{number}")
        files |= source.files
        content_type = source.content_type
        begin += size
    return Source(files, content_type)


def nothing() -> Source:
    return Source({"_SUCCESS": b"x"}, None)


def rows_of(outcome: Outcome, channel: str = "train") -> tuple[list[int], int]:
    """Return the rows of each host and of all, as the log has them."""
    found = re.search(rf"^Rows of {channel}: (.*); together ([\d,]+)\.$", outcome.log, re.MULTILINE)
    assert found, outcome.log
    return [int(part.split()[1].replace(",", "")) for part in found[1].split(", ")], int(
        found[2].replace(",", "")
    )


def assert_trained(outcomes: list[Outcome]) -> Outcome:
    assert [outcome.code for outcome in outcomes] == [0] * len(outcomes), "\n\n".join(o.log for o in outcomes)
    leader, *others = outcomes
    assert list(leader.models) == ["xgboost-model"]
    assert all(not other.models and not other.output_data for other in others)
    assert sum("\ttrain-" in outcome.log for outcome in outcomes) == 1
    return leader


def last_values(outcome: Outcome) -> dict[str, float]:
    line = [line for line in outcome.log.splitlines() if re.match(r"\[\d+\]\t", line)][-1]
    return {name: float(value) for name, value in (part.split(":") for part in line.split("\t")[1:])}


def test_two_hosts_with_a_shard_each_train_on_all_rows(tmp_path: Path, table: pd.DataFrame) -> None:
    by_label = table.sort_values("y")
    shards = [{"train": csv(by_label[:1700])}, {"train": csv(by_label[1700:])}]
    with hosts_of(tmp_path, shards, SETTINGS, distribution="ShardedByS3Key") as job:
        leader = assert_trained(job.run())
    assert rows_of(leader) == ([1700, 1300], 3000)
    predictions = leader.predict(table.drop(columns="y"))
    seen = last_values(leader)
    assert seen["train-logloss"] == pytest.approx(log_loss(table["y"], predictions), rel=1e-5)
    assert seen["train-accuracy"] == pytest.approx(accuracy_score(table["y"], predictions > 0.5), abs=1e-6)
    matrix = xgb.QuantileDMatrix(table.drop(columns="y").to_numpy(), table["y"].to_numpy())
    alone = xgb.train({"objective": "binary:logistic", "max_depth": 3}, matrix, 10)
    # Sketches that are merged cut other bins than one sketch over all rows.
    assert seen["train-logloss"] == pytest.approx(log_loss(table["y"], alone.predict(matrix)), rel=0.02)


@pytest.mark.parametrize("said", [None, "FullyReplicated"])
@pytest.mark.parametrize("write", [csv, parquet])
def test_hosts_with_the_same_files_read_each_row_once(
    tmp_path: Path, table: pd.DataFrame, write: Callable[..., Source], said: str | None
) -> None:
    same = {"train": parts(table, 900, 700, 1000, 400, write=write)}
    with hosts_of(tmp_path, [same, same], SETTINGS, distribution=said) as job:
        leader = assert_trained(job.run())
    each, together = rows_of(leader)
    assert together == 3000
    assert sorted(each) == [1400, 1600]


@pytest.mark.parametrize("files", [(1500, 1500), (3000,), (2999, 1)])
def test_three_hosts_with_fewer_files_cut_them_between_lines(
    tmp_path: Path, table: pd.DataFrame, files: tuple[int, ...]
) -> None:
    same = {"train": parts(table, *files)}
    with hosts_of(tmp_path, [same] * 3, SETTINGS) as job:
        leader = assert_trained(job.run())
    each, together = rows_of(leader)
    assert together == 3000
    assert max(each) - min(each) < 60


def test_a_file_in_which_quotes_come_late_is_read_whole_by_one_host(
    tmp_path: Path, table: pd.DataFrame
) -> None:
    noted = table.assign(note=["plain"] * 2000 + ["two\nlines, and\n1,2,3"] * 1000)
    same = {"train": csv(noted, header=True)}
    with hosts_of(tmp_path, [same] * 3, {**SETTINGS, "drop_columns": "note"}) as job:
        leader = assert_trained(job.run())
    assert rows_of(leader) == ([3000, 0, 0], 3000)
    assert "none is cut, for text in them is quoted" in leader.log


def test_a_single_parquet_file_is_cut_between_rows(tmp_path: Path, table: pd.DataFrame) -> None:
    path = tmp_path / "table.parquet"
    table.to_parquet(path, index=False, row_group_size=700)
    same = {"train": Source({"table.parquet": path.read_bytes()}, None)}
    with hosts_of(tmp_path, [same] * 3, SETTINGS) as job:
        leader = assert_trained(job.run())
    each, together = rows_of(leader)
    assert together == 3000
    assert max(each) - min(each) <= 2


def test_hosts_that_are_said_to_hold_the_same_files_must_do_so(tmp_path: Path) -> None:
    files = {"a.csv": b"1,1\n0,2\n", "b.csv": b"1,1\n0,2\n"}
    sources = [{"train": Source(files, "text/csv")}, {"train": Source({"a.csv": files["a.csv"]}, "text/csv")}]
    with hosts_of(tmp_path, sources, {"num_round": 2}, distribution="FullyReplicated") as job:
        outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [2, 2]
    for outcome in outcomes:
        assert outcome.failure is not None
        assert "b.csv has 8 bytes on 127.0.0.1 and is missing on 127.0.0.2" in outcome.failure


def test_a_first_host_without_rows_joins_with_an_empty_batch(tmp_path: Path, table: pd.DataFrame) -> None:
    shards = [{"train": nothing()}, {"train": csv(table[:1000])}, {"train": csv(table[1000:])}]
    with hosts_of(tmp_path, shards, SETTINGS, distribution="ShardedByS3Key") as job:
        leader = assert_trained(job.run())
    assert rows_of(leader) == ([0, 1000, 2000], 3000)
    assert leader.booster().num_features() == 5


def test_validation_on_one_host_is_validation_for_all(tmp_path: Path, table: pd.DataFrame) -> None:
    shards = [
        {"train": csv(table[:1000], header=True)},
        {"train": csv(table[1000:2500], header=True), "validation": csv(table[2500:], header=True)},
        {"train": nothing()},
    ]
    settings = {**SETTINGS, "num_round": 60, "eta": 1, "early_stopping_rounds": 3, "eval_metric": "logloss"}
    with hosts_of(tmp_path, shards, settings, distribution="ShardedByS3Key") as job:
        outcomes = job.run()
    leader = assert_trained(outcomes)
    assert rows_of(leader, "validation") == ([0, 500, 0], 500)
    rounds = {re.search(r"^Trained (\d+) rounds", outcome.log, re.MULTILINE)[1] for outcome in outcomes}  # type: ignore[index]
    assert len(rounds) == 1
    assert int(rounds.pop()) < 60
    assert leader.booster().feature_names == [f"x{index}" for index in range(5)]
    held_out = table[2500:]
    best = float(re.search(r"validation-logloss:([\d.]+)\)", leader.log)[1])  # type: ignore[index]
    assert best == pytest.approx(
        log_loss(held_out["y"], leader.predict(held_out.drop(columns="y"))), rel=1e-5
    )


def test_what_is_remarkable_in_the_rows_of_all_hosts_is_said_by_the_first(
    tmp_path: Path, table: pd.DataFrame
) -> None:
    leaking = table.assign(k=table["y"] * 2 + 1).sort_values("y")
    shards = [{"train": csv(leaking[:1000], header=True)}, {"train": csv(leaking[1000:], header=True)}]
    settings = {**SETTINGS, "num_round": 60, "early_stopping_rounds": 2, "eval_train": "false", "eta": 1}
    with hosts_of(tmp_path, shards, settings, distribution="ShardedByS3Key") as job:
        leader, other = outcomes = job.run()
    assert_trained(outcomes)
    watched, leak = [line for line in leader.log.splitlines() if line.startswith("Notice: ")]
    assert leak.startswith("Notice: The column 'k' tells the label exactly")
    assert watched.startswith("Notice: Early stopping watches the rows that are trained on")
    assert "Notice: " not in other.log
    report = json.loads(leader.output_data["metrics.json"])
    assert [f"Notice: {text}" for text in report["notices"]] == [watched, leak]
    assert report["monitored"] == "train-accuracy"


@pytest.mark.soak
def test_a_host_that_starts_90_seconds_late_is_waited_for(tmp_path: Path, table: pd.DataFrame) -> None:
    shards = [{"train": csv(table[:1700])}, {"train": csv(table[1700:])}]
    with hosts_of(tmp_path, shards, SETTINGS, distribution="ShardedByS3Key") as job:
        job[0].start()
        time.sleep(90)
        job[1].start()
        leader = assert_trained(job.wait())
    assert "Waiting for 127.0.0.2 (not in touch yet)." in leader.log


@pytest.mark.soak
def test_a_leader_that_starts_90_seconds_late_is_waited_for(tmp_path: Path, table: pd.DataFrame) -> None:
    shards = [{"train": csv(table[:1700])}, {"train": csv(table[1700:])}]
    with hosts_of(tmp_path, shards, SETTINGS, distribution="ShardedByS3Key") as job:
        job[1].start()
        time.sleep(90)
        job[0].start()
        leader, other = job.wait()
    assert_trained([leader, other])
    assert "Waiting for 127.0.0.1, port" in other.log


@pytest.mark.soak
def test_a_host_that_loads_90_seconds_longer_is_waited_for(tmp_path: Path) -> None:
    # Wide padding around a missing value is read with care: about 3 million cells a second.
    rows = (b"1,   NA   ," + b"1," * 57 + b"1\n" + b"0," * 59 + b"1\n") * 40_000
    slow = Source({f"part-{number}.csv": rows for number in range(200)}, None)
    shards = [{"train": csv(pd.DataFrame(np.eye(60)))}, {"train": slow}]
    with hosts_of(tmp_path, shards, {"num_round": 2}, distribution="ShardedByS3Key") as job:
        begin = time.monotonic()
        job.start()
        job[0].wait_for("Still loading: 127.0.0.2.", 120)
        leader = assert_trained(job.wait(900))
    assert time.monotonic() - begin > 90
    assert rows_of(leader) == ([60, 16_000_000], 16_000_060)


@pytest.mark.soak
def test_ten_thousand_small_files_are_shared_by_three_hosts(tmp_path: Path) -> None:
    files = Source(
        {f"{number % 100:02}/part-{number:05}.csv": b"1,2,3\n0,1,5\n" for number in range(10_000)}, None
    )
    with hosts_of(tmp_path, [{"train": files}] * 3, {"num_round": 2}) as job:
        leader = assert_trained(job.run(300))
    each, together = rows_of(leader)
    assert together == 20_000
    assert max(each) - min(each) <= 2
    loaded = re.search(r"^Phases: load ([\d.]+) s", leader.log, re.MULTILINE)
    assert loaded
    # 1.3 ms a file were measured on a busy machine with two cores; this is a limit against the quadratic.
    assert float(loaded[1]) < 0.01 * 10_000


def test_hosts_of_which_one_lacks_a_class_have_one_coding(tmp_path: Path, table: pd.DataFrame) -> None:
    words = np.array(["red", "green", "blue"])[np.arange(len(table)) % 3]
    named = table.assign(y=words, x0=table["x0"] + np.arange(len(table)) % 3)
    parts = [named[named["y"] != "red"], named[named["y"] == "red"], named[:900]]
    shards = [{"train": csv(part, header=True)} for part in parts]
    settings = {**SETTINGS, "objective": "multi:softprob", "eval_metric": "merror", "class_labels": "auto"}
    with hosts_of(tmp_path, shards, settings, distribution="ShardedByS3Key") as job:
        leader = assert_trained(job.run())
    classes = json.loads(leader.booster().attr("smxgb") or "{}")["classes"]
    assert classes == ["blue", "green", "red"]
    every = pd.concat(parts)
    predicted = np.array(classes)[leader.predict(every.drop(columns="y")).argmax(axis=1)]
    assert last_values(leader)["train-merror"] == pytest.approx(np.mean(predicted != every["y"]), abs=1e-6)
