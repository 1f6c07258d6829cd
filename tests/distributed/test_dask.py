"""The Dask mode with processors in the place of GPUs: what it trains on, what it is worth, what it costs."""

from __future__ import annotations

import re
import socket
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, root_mean_squared_error
from tests.distributed.dask_hosts import dask_hosts, processes, rows_of
from tests.opt_ml import Outcome, Source, csv, parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


SETTINGS = {
    "objective": "binary:logistic",
    "num_round": 10,
    "max_depth": 3,
    "eval_metric": "logloss,accuracy",
}


def features_of(rows: int, columns: int = 5, seed: int = 5) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
    return pd.DataFrame({f"x{index}": values[:, index] for index in range(columns)})


def labelled(features: pd.DataFrame, kind: str = "binary") -> pd.DataFrame:
    """Return the rows with a label, which the features explain in part, before them."""
    noise = np.random.default_rng(6)
    score = features["x0"] - 2 * features["x1"] + np.abs(features["x2"]) - 0.8
    if kind == "binary":
        label = score + noise.logistic(size=len(features)) > 0
    elif kind == "classes":
        label = np.digitize(score + noise.normal(size=len(features)), [-2, 0, 2])
    else:
        label = score + noise.normal(size=len(features))
    features.insert(0, "y", np.asarray(label, np.float32))
    return features


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return labelled(features_of(3000))


def parts(table: pd.DataFrame, *sizes: int, write: Callable[..., Source] = parquet) -> Source:
    """Return a channel with a file for each size, of the table's rows in order."""
    files: dict[str, bytes] = {}
    begin = 0
    for number, size in enumerate(sizes):
        source = write(table[begin : begin + size], name=f"part-{number:05}")
        files |= source.files
        begin += size
    return Source(files, source.content_type)


def assert_trained(outcomes: list[Outcome]) -> Outcome:
    assert [outcome.code for outcome in outcomes] == [0] * len(outcomes), "\n\n".join(o.log for o in outcomes)
    leader, *others = outcomes
    assert list(leader.models) == ["xgboost-model"]
    assert all(not other.models and not other.output_data for other in others)
    assert sum("\ttrain-" in outcome.log for outcome in outcomes) == 1
    return leader


def evaluation(outcome: Outcome) -> list[str]:
    return [line for line in outcome.log.splitlines() if re.search(r"\[\d+\]\t", line)]


def test_one_host_trains_with_both_workers_on_all_rows(tmp_path: Path, table: pd.DataFrame) -> None:
    channels = {"train": parts(table, 900, 700, 1000, 400), "validation": csv(table[:501], header=True)}
    with dask_hosts(tmp_path, [channels], SETTINGS) as job:
        leader = assert_trained(job.run())
    assert "Mode: dask" in leader.log
    assert rows_of(leader) == ([[1400, 1600]], 3000)
    _, validated = rows_of(leader, "validation")
    assert validated == 501
    [line] = evaluation(leader)[-1:]
    seen = float(re.search(r"train-logloss:([\d.]+)", line)[1])  # type: ignore[index]
    assert seen == pytest.approx(log_loss(table["y"], leader.predict(table.drop(columns="y"))), rel=1e-5)


@pytest.mark.parametrize(("write", "said"), [(csv, None), (parquet, "FullyReplicated")])
def test_workers_of_hosts_with_the_same_files_read_each_row_once(
    tmp_path: Path, table: pd.DataFrame, write: Callable[..., Source], said: str | None
) -> None:
    same = {"train": parts(table, *[600] * 5, write=write)}
    with dask_hosts(tmp_path, [same, same], SETTINGS, said) as job:
        leader = assert_trained(job.run())
    each, together = rows_of(leader)
    assert together == 3000
    assert sorted(chain(*each)) == [600, 600, 600, 1200]


def test_the_workers_of_a_host_share_its_shard_and_no_other(tmp_path: Path, table: pd.DataFrame) -> None:
    shards = [{"train": csv(table[:2000])}, {"train": csv(table[2000:])}]
    with dask_hosts(tmp_path, shards, SETTINGS, "ShardedByS3Key") as job:
        leader = assert_trained(job.run())
    each, together = rows_of(leader)
    assert together == 3000
    assert [sum(host) for host in each] == [2000, 1000]
    assert all(len(host) == 2 and min(host) > 400 for host in each)


def test_a_file_in_which_quotes_come_late_is_read_whole_by_one_worker(
    tmp_path: Path, table: pd.DataFrame
) -> None:
    noted = table.assign(note=["plain"] * 2000 + ["two\nlines, and\n1,2,3"] * 1000)
    settings = {**SETTINGS, "drop_columns": "note"}
    with dask_hosts(tmp_path, [{"train": csv(noted, header=True)}], settings) as job:
        leader = assert_trained(job.run())
    assert rows_of(leader) == ([[3000, 0]], 3000)


def test_a_single_parquet_file_is_cut_between_rows(tmp_path: Path, table: pd.DataFrame) -> None:
    path = tmp_path / "table.parquet"
    table.to_parquet(path, index=False, row_group_size=700)
    same = {"train": Source({"table.parquet": path.read_bytes()}, None)}
    with dask_hosts(tmp_path / "job", [same], SETTINGS) as job:
        leader = assert_trained(job.run())
    [each], together = rows_of(leader)
    assert together == 3000
    assert max(each) - min(each) <= 2


def test_a_worker_without_rows_joins_empty_the_first_one_too(tmp_path: Path, table: pd.DataFrame) -> None:
    shards = [{"train": Source({"_SUCCESS": b"x"}, None)}, {"train": parquet(table)}]
    settings = {**SETTINGS, "num_round": 30, "eta": 1, "early_stopping_rounds": 3, "eval_metric": "logloss"}
    shards[1]["validation"] = parquet(table[:300])
    with dask_hosts(tmp_path, shards, settings, "ShardedByS3Key") as job:
        leader = assert_trained(job.run())
    each, together = rows_of(leader)
    assert each[0] == [0, 0]
    assert together == 3000
    assert leader.booster().feature_names == [f"x{index}" for index in range(5)]


def test_weights_and_groups_are_shared_out_with_their_rows(tmp_path: Path, table: pd.DataFrame) -> None:
    ranked = table.assign(y=np.arange(3000) % 4, query=np.arange(3000) // 10)
    settings = {"objective": "rank:ndcg", "group_column": "query", "num_round": 5, "eval_metric": "ndcg@5"}
    with dask_hosts(tmp_path / "ranked", [{"train": parts(ranked, 1500, 1000, 500)}], settings) as job:
        leader = assert_trained(job.run())
    assert rows_of(leader)[1] == 3000
    weighted = table.assign(w=np.where(table["y"] > 0, 3.0, 1.0))
    settings = {**SETTINGS, "weight_column": "w"}
    with dask_hosts(tmp_path / "weighted", [{"train": parts(weighted, 1000, 2000)}], settings) as job:
        leader = assert_trained(job.run())
    [line] = evaluation(leader)[-1:]
    seen = float(re.search(r"train-logloss:([\d.]+)", line)[1])  # type: ignore[index]
    predictions = leader.predict(table.drop(columns="y"))
    assert seen == pytest.approx(log_loss(table["y"], predictions, sample_weight=weighted["w"]), rel=1e-5)


def test_evaluation_lines_come_in_order_and_whole_from_the_first_host_alone(
    tmp_path: Path, table: pd.DataFrame
) -> None:
    same = {"train": parquet(table), "validation": parquet(table[:500])}
    with dask_hosts(tmp_path, [same, same], {**SETTINGS, "num_round": 100, "eval_metric": "logloss"}) as job:
        outcomes = job.run()
    leader = assert_trained(outcomes)
    shape = re.compile(r"\[(\d+)\]\ttrain-logloss:\d+\.\d+\tvalidation-logloss:\d+\.\d+")
    lines = [shape.fullmatch(line) for line in evaluation(leader)]
    assert [int(line[1]) for line in lines if line] == list(range(100))
    assert len(lines) == 100


QUALITY: dict[str, dict[str, object]] = {
    "binary": {"objective": "binary:logistic", "eval_metric": "logloss"},
    "classes": {"objective": "multi:softprob", "num_class": 4, "eval_metric": "mlogloss"},
    "regression": {"objective": "reg:squarederror", "eval_metric": "rmse"},
}


@pytest.mark.parametrize("kind", QUALITY)
def test_the_model_is_as_good_as_that_of_one_process(tmp_path: Path, kind: str) -> None:
    table = labelled(features_of(12_000, 8), kind)
    train, held_out = table[:8000], table[8000:]
    settings = {**QUALITY[kind], "num_round": 40, "max_depth": 4, "eta": 0.3}
    shards = [{"train": parquet(train[:5000])}, {"train": parts(train[5000:], 1000, 2000)}]
    with dask_hosts(tmp_path / "dask", shards, settings, "ShardedByS3Key") as job:
        together = assert_trained(job.run())
    single = {**settings, "use_dask_gpu_training": "false", "workers_per_host": 1}
    with dask_hosts(tmp_path / "single", [{"train": parquet(train)}], single) as job:
        alone = assert_trained(job.run())
    assert "Mode: single" in alone.log
    score = root_mean_squared_error if kind == "regression" else log_loss
    values = [
        score(held_out["y"], outcome.predict(held_out.drop(columns="y"))) for outcome in (together, alone)
    ]
    # Workers merge their sketches, so their bins are cut elsewhere: another model, of the same worth.
    assert values[0] == pytest.approx(values[1], rel=0.02)
    assert values[0] < 0.8 * score(held_out["y"], uninformed(train["y"], len(held_out), kind))


def uninformed(
    label: pd.Series[float], rows: int, kind: str
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return what one predicts without a look at the features."""
    if kind == "regression":
        return np.full(rows, label.mean())
    return np.tile(label.value_counts(normalize=True).sort_index().to_numpy(), (rows, 1))


def test_the_announcements_example_runs_with_processors_for_gpus(tmp_path: Path) -> None:
    table = labelled(features_of(2000), "regression")
    settings = {
        "objective": "reg:squarederror",
        "num_round": 500,
        "verbosity": 3,
        "tree_method": "gpu_hist",
        "eval_metric": "rmse",
    }
    channels = {"train": parts(table, 800, 700), "validation": parquet(table[1500:])}
    with dask_hosts(tmp_path, [channels], settings, "FullyReplicated") as job:
        leader = assert_trained(job.run())
    shape = re.compile(r"\[(\d+)\]\ttrain-rmse:\d+\.\d+\tvalidation-rmse:\d+\.\d+")
    assert [int(line[1]) for line in map(shape.fullmatch, evaluation(leader)) if line] == list(range(500))
    assert leader.booster().num_boosted_rounds() == 500


def test_many_small_files_are_read_once_each(tmp_path: Path) -> None:
    table = labelled(features_of(14_190, 3))
    same = {"train": parts(table, *[10] * 1419)}
    with dask_hosts(tmp_path, [same, same], SETTINGS) as job:
        leader = assert_trained(job.run())
    each, together = rows_of(leader)
    assert together == 14_190
    assert all(3400 < rows < 3700 for host in each for rows in host)


def test_no_process_imports_a_data_frame(
    tmp_path: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONVERBOSE", "1")
    with dask_hosts(tmp_path, [{"train": parquet(table)}], SETTINGS) as job:
        leader = assert_trained(job.run())
    imported = set(re.findall(r"^import '([\w.]+)'", leader.log, re.MULTILINE))
    assert {"distributed.worker", "distributed.scheduler", "distributed.client"} <= imported
    assert not [name for name in imported if name.startswith(("dask.dataframe", "pandas"))]


class Peaks(Thread):
    """Follows the peak of resident memory of some processes until they end."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        super().__init__(daemon=True)
        self._pids = pids
        self.kib: dict[str, int] = {}

    def run(self) -> None:
        left = dict(self._pids)
        while left:
            for name, pid in list(left.items()):
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                except OSError:
                    del left[name]
                    continue
                if found := re.search(r"VmHWM:\s+(\d+) kB", status):
                    self.kib[name] = int(found[1])
                else:
                    left.pop(name)


def test_the_memory_of_scheduler_and_client_does_not_grow_with_the_data(tmp_path: Path) -> None:
    peaks = []
    for rows in (20_000, 200_000):
        channels = {"train": parquet(labelled(features_of(rows, 40)))}
        with dask_hosts(tmp_path / str(rows), [channels], SETTINGS) as job:
            job.start()
            job[0].wait_for("Dask: 2 workers")
            watch = Peaks(processes(job[0]))
            watch.start()
            leader = assert_trained(job.wait())
            watch.join(5)
        assert rows_of(leader)[1] == rows
        peaks.append(watch.kib)
    few, many = peaks
    assert few.keys() == many.keys() == {"work", "dask-scheduler", "dask-worker0", "dask-worker1"}
    data = 200_000 * 40 * 4 // 1024
    for name in ("work", "dask-scheduler"):
        assert many[name] - few[name] < data / 4, peaks
    assert max(many["dask-worker0"], many["dask-worker1"]) - few["dask-worker0"] > data / 4, peaks


def test_a_taken_port_of_the_scheduler_is_named_with_its_setting(tmp_path: Path, table: pd.DataFrame) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        hosts = [{"train": csv(table)}] * 2
        with dask_hosts(tmp_path, hosts, {**SETTINGS, "scheduler_port": port}) as job:
            outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [3, 3], outcomes[0].log
    for outcome in outcomes:
        assert outcome.failure == (
            f"PlatformError: host 127.0.0.1: Dask's scheduler can't listen at 127.0.0.1, port {port} "
            "(Address already in use): set scheduler_port to a free one."
        )
        assert "Traceback" not in outcome.log


def test_jobs_of_one_host_that_run_at_the_same_time_do_not_meet(tmp_path: Path, table: pd.DataFrame) -> None:
    settings = {**SETTINGS, "scheduler_port": 8786}
    with (
        dask_hosts(tmp_path / "a", [{"train": csv(table)}], settings) as first,
        dask_hosts(tmp_path / "b", [{"train": csv(table[:800])}], settings) as other,
    ):
        first.start()
        other.start()
        assert rows_of(assert_trained(first.wait()))[1] == 3000
        assert rows_of(assert_trained(other.wait()))[1] == 800


def test_a_mistake_in_the_data_names_host_file_and_line_once(tmp_path: Path, table: pd.DataFrame) -> None:
    rows = table[:100].to_csv(index=False, header=False).encode()
    shards = [{"train": csv(table)}, {"train": Source({"bad.csv": rows + b"1,word,2,3,4,5\n" + rows}, None)}]
    with dask_hosts(tmp_path, shards, SETTINGS, "ShardedByS3Key") as job:
        outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [2, 2]
    for outcome in outcomes:
        assert outcome.failure
        assert "host 127.0.0.2" in outcome.failure
        assert "bad.csv, line 101" in outcome.failure
        assert "word" in outcome.failure
