"""Jobs whose rows do not fit into memory: XGBoost reads them from disk, and the model is the same.

How much memory is free is set here; `test_memory_limit.py` has jobs in a control group that kills them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from tests.opt_ml import Source, csv, libsvm, parquet, write_opt_ml
from tests.work import work

from smxgb.rows import batch
from smxgb.training import memory_plan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.opt_ml import Outcome

MIB = 1 << 20
ROWS = 60_000
PLANNED = re.compile(r"^Matrix: quantile, about (\d+) MiB", re.MULTILINE)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "ROWS", 8_192)


def table(rows: int = ROWS) -> pd.DataFrame:
    generator = np.random.default_rng(3)
    x = generator.normal(size=(rows, 12)).astype(np.float32)
    score = x[:, 0] + x[:, 1] * x[:, 2] + generator.normal(size=rows)
    x[:, 3][generator.random(rows) < 0.2] = np.nan
    return pd.DataFrame({"y": (score > 0).astype(int)} | {f"x{n}": x[:, n] for n in range(12)})


def with_categories() -> pd.DataFrame:
    rows = table()
    words = np.random.default_rng(5).choice(["a", "b", "c", "d"], len(rows))
    return rows.assign(word=pd.Categorical(words))


def in_groups() -> pd.DataFrame:
    rows = table()
    return rows.assign(q=np.arange(len(rows)) // 15)


def trained(base: Path, channels: Mapping[str, Source], settings: Mapping[str, object]) -> Outcome:
    chosen = {"num_round": 6, "objective": "binary:logistic", **settings}
    write_opt_ml(base, hyperparameters=chosen, channels=channels)
    return work(base)


def leave(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the host say that so many bytes of memory are free."""
    monkeypatch.setattr(memory_plan, "memory_available", lambda: free)


JOBS: dict[str, tuple[dict[str, Source], dict[str, object]]] = {
    "CSV": ({"train": csv(table())}, {}),
    "early stopping": (
        {"train": parquet(table()), "validation": parquet(table(20_000))},
        {"early_stopping_rounds": 2, "eval_metric": "auc", "eta": 1, "max_depth": 8, "num_round": 30},
    ),
    "sparse rows": ({"train": libsvm(table().fillna(0))}, {}),
    "weights": ({"train": parquet(table().assign(w=1.5))}, {"weight_column": "w"}),
    "ranking": ({"train": parquet(in_groups())}, {"objective": "rank:ndcg", "group_column": "q"}),
    "categories": (
        {"train": parquet(with_categories())},
        {"enable_categorical": True, "max_cat_to_onehot": 2},
    ),
    "sampled cuts": ({"train": parquet(table())}, {"sketch_rows": 4_000}),
    "lossguide": (
        {"train": parquet(table())},
        {"grow_policy": "lossguide", "max_leaves": 20, "max_depth": 0},
    ),
    "dropout": ({"train": parquet(table())}, {"booster": "dart", "rate_drop": 0.4, "subsample": 0.7}),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_model_from_disk_is_that_from_memory_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    channels, settings = JOBS[name]
    in_memory = trained(tmp_path / "memory", channels, settings)
    needed = planned(in_memory)
    leave(needed - MIB, monkeypatch)
    from_disk = trained(tmp_path / "disk", channels, settings)
    assert from_disk.code == 0, from_disk.log
    [line] = (line for line in from_disk.log.splitlines() if line.startswith("Matrix: external, about "))
    assert " of disk. The rows do not fit into memory: each round reads them from disk." in line
    assert ("grow_policy=lossguide that takes" in line) is (name == "lossguide")
    assert from_disk.model == in_memory.model is not None


def test_a_model_goes_on_from_disk_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    channels = {"train": parquet(table())}
    checkpoints = {"LocalPath": str(tmp_path / "checkpoints")}
    whole = trained(tmp_path / "whole", channels, {"subsample": 0.5})
    for folder, rounds in (("first", 3), ("second", 6)):
        if folder == "second":
            leave(planned(whole) - MIB, monkeypatch)
        settings = {"num_round": rounds, "objective": "binary:logistic", "subsample": 0.5}
        write_opt_ml(
            tmp_path / folder, hyperparameters=settings, channels=channels, checkpointconfig=checkpoints
        )
        resumed = work(tmp_path / folder)
        assert resumed.code == 0, resumed.log
    assert "Matrix: external" in resumed.log
    assert "[2]\t" not in resumed.log
    assert resumed.model == whole.model


def test_a_disk_without_room_for_the_cache_is_refused_with_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels = {"train": parquet(table())}
    leave(planned(trained(tmp_path / "memory", channels, {})) - MIB, monkeypatch)
    monkeypatch.setattr(memory_plan, "free_bytes", lambda _: MIB)
    refused = trained(tmp_path / "disk", channels, {})
    assert (refused.code, refused.model) == (3, None)
    assert refused.failure is not None
    assert refused.failure.startswith(
        "PlatformError: the training data does not fit into memory, and its cache needs about 5 MiB of disk, "
        "of which 1 MiB are free: "
    )


def planned(outcome: Outcome) -> int:
    """Return the bytes that the job says its matrix in memory needs."""
    found = PLANNED.search(outcome.log)
    assert found, outcome.log
    return int(found[1]) * MIB
