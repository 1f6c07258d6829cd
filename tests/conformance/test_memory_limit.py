"""Jobs in a control group whose memory is too small for their rows: the kernel kills what takes more."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.opt_ml import run_train

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.opt_ml import Outcome

GROUPS = Path("/sys/fs/cgroup")
MIB = 1 << 20
COLUMNS = 28
SETTINGS = {"num_round": "10", "objective": "binary:logistic", "eval_metric": "auc"}


@contextmanager
def memory_limit(limit: int) -> Iterator[tuple[str, ...]]:
    """Yield what stands before a command that may use so many bytes of memory, in a group of its own."""
    memory, file = (GROUPS / "memory", "memory.limit_in_bytes")
    if not memory.exists():
        memory, file = (GROUPS, "memory.max")
    group = memory / "smxgb-test"
    try:
        group.mkdir(exist_ok=True)
        (group / file).write_text(str(limit))
    except OSError:
        pytest.skip("no control group can be made here")
    try:
        yield "sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"
    finally:
        group.rmdir()


def write(base: Path, rows: int, kind: str) -> None:
    """Write a job of so many rows, block by block."""
    generator = np.random.default_rng(7)
    train = base / "input/data/train"
    train.mkdir(parents=True)
    (base / "input/config").mkdir()
    (base / "input/config/hyperparameters.json").write_text(json.dumps(SETTINGS))
    schema = pa.schema([(name, pa.float32()) for name in ("y", *(f"x{n}" for n in range(COLUMNS)))])
    path = train / f"part.{kind}"
    writer = pyarrow.csv.CSVWriter(path, schema) if kind == "csv" else pq.ParquetWriter(path, schema)
    with writer:
        for start in range(0, rows, 100_000):
            x = generator.normal(size=(min(100_000, rows - start), COLUMNS)).astype(np.float32)
            y = x[:, 0] + np.sin(3 * x[:, 1]) + generator.logistic(size=len(x)) > 0
            writer.write_batch(pa.record_batch([y.astype(np.float32), *x.T.copy()], schema=schema))


def trained(base: Path, prefix: tuple[str, ...] = ()) -> Outcome:
    outcome = run_train(base, timeout=1800, prefix=prefix)
    assert outcome.code == 0, outcome.log
    return outcome


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_five_million_rows_are_trained_on_in_70_bytes_each(tmp_path: Path, kind: str) -> None:
    rows = 5_000_000
    write(tmp_path / "base", 1_000, kind)
    base = json.loads(trained(tmp_path / "base").output_data["metrics.json"])["peak_memory"]
    write(tmp_path / "job", rows, kind)
    in_memory = trained(tmp_path / "job")
    assert "Matrix: quantile" in in_memory.log
    with memory_limit(base + 70 * rows) as prefix:
        from_disk = trained(tmp_path / "job", prefix)
    assert re.search(r"^Matrix: external, ", from_disk.log, re.MULTILINE)
    assert "The work is started again" not in from_disk.log
    assert from_disk.model == in_memory.model is not None
