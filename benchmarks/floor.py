"""The floor of a job: what it costs at least, as one process that does nothing else.

Imports, one parse of the file by pyarrow in threads, a QuantileDMatrix from batches that are in memory, and
`xgboost.train` with the same parameters and metric. Prints the seconds of each part and the peak memory as
JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time

START = time.perf_counter()
# What a job keeps out of its imports, the floor must do without too.
sys.modules.update(dict.fromkeys(["pandas", "sklearn"]))  # type: ignore[arg-type]

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.csv  # noqa: E402
import pyarrow.parquet  # noqa: E402
import xgboost as xgb  # noqa: E402

BATCH = 65_536


class _InMemory(xgb.DataIter):
    def __init__(self, batches: list[pa.Table]) -> None:
        super().__init__()
        self._batches = batches
        self._next = 0

    def reset(self) -> None:
        self._next = 0

    def next(self, input_data: object) -> bool:
        if self._next == len(self._batches):
            return False
        table = self._batches[self._next]
        label = table.column(0).to_numpy()
        input_data(data=table.select(table.column_names[1:]), label=label)  # type: ignore[operator]
        self._next += 1
        return True


def parse(path: str, threads: int) -> pa.Table:
    """Return the file as one table of float32."""
    pa.set_cpu_count(threads)
    if path.endswith(".parquet"):
        return pyarrow.parquet.ParquetFile(path).read()
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - pathlib is one import more
        names = [f"f{index}" for index in range(stream.readline().count(",") + 1)]
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(column_names=names),
        convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32())),
    )


def main(path: str, rounds: int, threads: int) -> None:
    """Run the parts one after the other and print what each took."""
    seconds = {"import": time.perf_counter() - START}
    clock = time.perf_counter()
    table = parse(path, threads)
    batches = [table.slice(start, BATCH) for start in range(0, table.num_rows, BATCH)]
    del table
    seconds["load"] = time.perf_counter() - clock
    clock = time.perf_counter()
    matrix = xgb.QuantileDMatrix(_InMemory(batches), nthread=threads)
    seconds["matrix"] = time.perf_counter() - clock
    clock = time.perf_counter()
    parameters = {"objective": "binary:logistic", "max_depth": 6, "eval_metric": "auc", "nthread": threads}
    xgb.train(parameters, matrix, rounds, evals=[(matrix, "train")], verbose_eval=False)
    seconds["train"] = time.perf_counter() - clock
    seconds["total"] = time.perf_counter() - START
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_memory": peak}))


if __name__ == "__main__":
    np.seterr(all="raise")
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
