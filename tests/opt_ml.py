"""A whole /opt/ml tree from keyword arguments, and what a job left in it.

The tree is the one that SageMaker mounts into a training container ("How Amazon SageMaker Provides Training
Information", SageMaker developer guide). It serves jobs in Docker and jobs run as plain processes alike.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import xgboost as xgb
from tests.recordio import framed, record, tensor

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt
    import pandas as pd

type Json = Mapping[str, object]
type Derived = Literal["derived"]
"""The configuration file that SageMaker would write for these channels, or for one host."""


@dataclass(frozen=True)
class Source:
    """What a channel holds: its files by their path below the channel's folder, and what is said about them.

    `content_type` None leaves the key out, as SageMaker does where the user gives none.
    """

    files: Mapping[str, bytes]
    content_type: str | None
    settings: Json = field(default_factory=dict)


def csv(*tables: pd.DataFrame | bytes, header: bool = False, name: str = "data.csv") -> Source:
    """Return tables, or files as they are, as a CSV channel; without a header, as SageMaker's examples are.

    One has the name that is given, several are 0.csv and so on.
    """
    files = [
        table if isinstance(table, bytes) else table.to_csv(index=False, header=header).encode()
        for table in tables
    ]
    return Source(_named(files, name), "text/csv")


def parquet(*tables: pd.DataFrame | bytes, name: str = "data.parquet") -> Source:
    """Return tables, or files as they are, as a Parquet channel, with names as `csv` gives them."""
    files = [table if isinstance(table, bytes) else table.to_parquet(index=False) for table in tables]
    return Source(_named(files, name), "application/x-parquet")


def libsvm(table: pd.DataFrame, *, first_index: int = 0) -> Source:
    """Return a table, the label first, as a libsvm channel; what is missing has no index."""
    lines = []
    for label, *row in table.itertuples(index=False):
        pairs = [
            f"{index}:{value!r}"
            for index, value in enumerate(map(float, row), first_index)
            if not math.isnan(value)
        ]
        lines.append(f"{float(label)!r} {' '.join(pairs)}\n")
    return Source({"data.libsvm": "".join(lines).encode()}, "text/libsvm")


def recordio(
    table: pd.DataFrame, *, sparse: bool = False, kind: str = "f", part_bytes: int = 1 << 20
) -> Source:
    """Return a table, the label first, as a RecordIO-protobuf channel; sparse rows lack what is missing."""
    written = []
    for label, *row in table.itertuples(index=False):
        keys = [index for index, value in enumerate(row) if not math.isnan(value)] if sparse else ()
        kept = [row[key] for key in keys] if sparse else row
        written.append(record(tensor(kept, kind, keys, [len(row)]), tensor([label])))
    return Source({"data.rec": framed(written, part_bytes)}, "application/x-recordio-protobuf")


@dataclass(frozen=True)
class Outcome:
    """How a job ended: its exit code, its log (stdout and stderr), and what it left under /opt/ml.

    `failure` is the failure file's text, None where there is none. `models` and `output_data` hold every file
    below their folders, by relative path.
    """

    code: int
    log: str
    failure: str | None
    models: Mapping[str, bytes]
    output_data: Mapping[str, bytes]

    @property
    def model(self) -> bytes | None:
        """The bytes of the one model that a job without cross validation writes; None where it wrote none."""
        return self.models.get("xgboost-model")

    def booster(self) -> xgb.Booster:
        """Load the model; its absence is shown with the log."""
        assert self.model is not None, f"no model was written: {self.failure}\n{self.log}"
        return xgb.Booster(model_file=bytearray(self.model))

    def predict(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        """Return the model's predictions for a frame of the features in their order, shape (rows, ...)."""
        booster = self.booster()
        names = booster.feature_names
        return booster.predict(
            xgb.DMatrix(frame if names else frame.to_numpy(dtype="float32"), feature_names=names)
        )


def write_opt_ml(
    base: Path,
    *,
    hyperparameters: Mapping[str, object] | None,
    channels: Mapping[str, Source | pd.DataFrame | bytes],
    inputdataconfig: Json | Derived | None = "derived",
    resourceconfig: Json | Derived | None = "derived",
    checkpointconfig: Json | None = None,
) -> Path:
    """Write the tree into `base` and return it; a configuration that is None is not written.

    A frame is a CSV channel without header, bytes are one CSV file. Hyperparameters become strings, as
    SageMaker sends them.
    """
    sources = {name: _source(given) for name, given in channels.items()}
    for name, source in sources.items():
        for path, content in source.files.items():
            file = base / "input" / "data" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    if inputdataconfig == "derived":
        inputdataconfig = {name: _channel_config(source) for name, source in sources.items()}
    if resourceconfig == "derived":
        resourceconfig = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "eth0"}
    if hyperparameters is not None:
        hyperparameters = {name: str(value) for name, value in hyperparameters.items()}
    config = base / "input" / "config"
    for folder in (config, base / "model", base / "output" / "data"):
        folder.mkdir(parents=True, exist_ok=True)
    written = {
        "hyperparameters": hyperparameters,
        "inputdataconfig": inputdataconfig,
        "resourceconfig": resourceconfig,
        "checkpointconfig": checkpointconfig,
    }
    for name, content_ in written.items():
        if content_ is not None:
            (config / f"{name}.json").write_text(json.dumps(content_))
    return base


def read_outcome(base: Path, code: int, log: str) -> Outcome:
    """Return what a finished job left in the tree."""
    failure = base / "output" / "failure"
    return Outcome(
        code=code,
        log=log,
        failure=failure.read_text() if failure.exists() else None,
        models=_contents(base / "model"),
        output_data=_contents(base / "output" / "data"),
    )


def run_train(
    base: Path,
    *,
    timeout: float = 120,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Outcome:
    """Run `train` on a tree as a process of its own, without Docker; `prefix` stands before the command."""
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "smxgb", "train"],
        env={**os.environ, "SAGEMAKER_BASE_DIR": str(base), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
    return read_outcome(base, done.returncode, done.stdout)


def _named(files: Sequence[bytes], name: str) -> Mapping[str, bytes]:
    extension = name.rpartition(".")[2]
    names = [name] if len(files) == 1 else [f"{number}.{extension}" for number in range(len(files))]
    return dict(zip(names, files, strict=True))


def _source(given: Source | pd.DataFrame | bytes) -> Source:
    return given if isinstance(given, Source) else csv(given)


def _channel_config(source: Source) -> Json:
    content_type = {} if source.content_type is None else {"ContentType": source.content_type}
    return {
        "TrainingInputMode": "File",
        "S3DistributionType": "FullyReplicated",
        "RecordWrapperType": "None",
        **content_type,
        **source.settings,
    }


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
