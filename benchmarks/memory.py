"""What the plan says that a job needs, against the peak memory of real jobs: the numbers behind `plan`.

What is measured is the peak above that of the same job on 1,000 rows. Prints one line a job.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from tables import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SMALL = 1_000
PLANNED = re.compile(r"^Matrix: .*? about ([0-9,]+) MiB", re.MULTILINE)


@dataclass(frozen=True)
class Shape:
    """A job: its table, with a share of values `missing`, and its settings beside the usual ones."""

    name: str
    columns: int = 28
    kind: str = "csv"
    missing: float = 0.0
    classes: int = 2
    validation: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)


SHAPES = (
    Shape("dense"),
    Shape("dense, Parquet", kind="parquet"),
    Shape("dense, logloss", settings={"eval_metric": "logloss"}),
    Shape("dense, accuracy", settings={"eval_metric": "accuracy"}),
    Shape("100 columns", columns=100),
    Shape("100 columns, Parquet", columns=100, kind="parquet"),
    Shape("4 columns", columns=4),
    Shape("validation", validation=True),
    Shape("30 % missing", missing=0.3),
    Shape("30 % missing, Parquet", missing=0.3, kind="parquet"),
    Shape("90 % missing", missing=0.9),
    Shape("max_bin 512", settings={"max_bin": 512}),
    Shape("approx", settings={"tree_method": "approx"}),
    Shape("approx, 30 % missing", missing=0.3, settings={"tree_method": "approx"}),
    Shape("exact", settings={"tree_method": "exact"}),
    Shape("exact, 30 % missing", missing=0.3, settings={"tree_method": "exact"}),
    Shape("gblinear", settings={"booster": "gblinear"}),
    Shape("200 columns, depth 10", columns=200, settings={"max_depth": 10}),
    Shape("200 columns, depth 12", columns=200, settings={"max_depth": 12}),
    Shape("5 classes", classes=5, settings={"eval_metric": "mlogloss"}),
    Shape("5 classes, accuracy", classes=5, settings={"eval_metric": "accuracy"}),
    Shape("sampled rows", settings={"subsample": 0.5, "sampling_method": "uniform"}),
)


def table(shape: Shape, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a job, some of whose values are missing."""
    generator = np.random.default_rng(3)
    for block in blocks(rows, shape.columns):
        label, *columns = block.columns
        if shape.classes > 2:  # noqa: PLR2004 - binary
            label = pa.array(generator.integers(0, shape.classes, len(label)).astype(np.float32))
        if shape.missing:
            columns = [
                pa.array(column.to_numpy(), mask=generator.random(len(column)) < shape.missing)
                for column in columns
            ]
        yield pa.record_batch([label, *columns], names=block.schema.names)


def write(shape: Shape, rows: int, folder: Path) -> None:
    """Write the job's /opt/ml folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for channel in ("train", "validation")[: 1 + shape.validation]:
        place = folder / "input/data" / channel
        place.mkdir(parents=True)
        source = table(shape, rows)
        first = next(source)
        path = place / f"part.{shape.kind}"
        options = pyarrow.csv.WriteOptions(include_header=False)
        with (
            pyarrow.csv.CSVWriter(path, first.schema, write_options=options)
            if shape.kind == "csv"
            else pyarrow.parquet.ParquetWriter(path, first.schema)
        ) as writer:
            writer.write_batch(first)
            for block in source:
                writer.write_batch(block)
    objective = "binary:logistic" if shape.classes == 2 else "multi:softprob"  # noqa: PLR2004 - binary
    settings = {
        "objective": objective,
        "num_round": 5,
        "max_depth": 6,
        "eval_metric": "auc",
        **shape.settings,
    }
    (folder / "input/config").mkdir()
    texts = {name: str(value) for name, value in settings.items()}
    (folder / "input/config/hyperparameters.json").write_text(json.dumps(texts))


def run(folder: Path) -> tuple[int, int]:
    """Run a job; return the bytes that it planned with, and its peak."""
    done = subprocess.run(
        [sys.executable, "-m", "smxgb", "train"],
        check=True,
        env=os.environ | {"SAGEMAKER_BASE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    planned = PLANNED.search(done.stdout)
    if planned is None:
        raise SystemExit(done.stdout)
    report = json.loads((folder / "output/data/metrics.json").read_text())
    return int(planned[1].replace(",", "")) << 20, report["peak_memory"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--only", default="", help="only shapes whose name holds this text")
    parser.add_argument("--folder", type=Path, default=Path("build/memory"))
    options = parser.parse_args()
    for shape in SHAPES:
        if options.only not in shape.name:
            continue
        values = []
        for rows in (SMALL, options.rows):
            write(shape, rows, options.folder)
            values.append(run(options.folder))
        (_, small_peak), (planned, peak) = values
        measured = peak - small_peak
        ratio = planned / measured
        print(
            f"{shape.name:24} {planned >> 20:5} MiB planned {measured >> 20:5} measured = {ratio:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
