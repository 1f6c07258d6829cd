"""A row of the tables of bad inputs: the folder of a job that must fail, and the words it fails with."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from tests.opt_ml import Source, run_train, write_opt_ml
from tests.work import work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pandas as pd
    from tests.opt_ml import Derived, Json, Outcome

    type Columns = dict[str, list[object]]

ROWS = b"1,0.5,3\n0,0.1,4\n1,0.7,5\n0,0.2,6\n"
NAMED = b"label,age,height\n" + ROWS
COLUMNS: Columns = {"label": [1.0, 0.0], "a": [1.0, 2.0], "b": [3.0, 4.0]}
LIMIT = 1024
"""SageMaker shows so many characters of a failure file."""


@dataclass(frozen=True)
class Mistake:
    """A job that must fail.

    `says` is the first line of the failure file, the job's folder being written /opt/ml. `settings` join
    `num_round=2`, None taking a setting away. `spoil` does to the written folder what the arguments can't.
    A `whole` job has processes of its own, as one of each kind of mistake has; the others run in this one.
    """

    says: str
    settings: Mapping[str, object] = field(default_factory=dict)
    train: Source | pd.DataFrame | bytes | None = ROWS
    validation: Source | pd.DataFrame | bytes | None = None
    others: Mapping[str, Source | bytes] = field(default_factory=dict)
    inputdataconfig: Json | Derived = "derived"
    resourceconfig: Json | Derived = "derived"
    spoil: Callable[[Path], None] | None = None
    code: int = 2
    whole: bool = False

    def write(self, base: Path) -> None:
        """Write the job's folder."""
        channels = {"train": self.train, "validation": self.validation, **self.others}
        settings = {"num_round": 2, **self.settings}
        write_opt_ml(
            base,
            hyperparameters={name: value for name, value in settings.items() if value is not None},
            channels={name: source for name, source in channels.items() if source is not None},
            inputdataconfig=self.inputdataconfig,
            resourceconfig=self.resourceconfig,
        )
        if self.spoil:
            self.spoil(base)


def assert_fails(mistake: Mistake, base: Path) -> None:
    """Run the job: it must end with the row's exit code and words, and leave neither model nor report."""
    mistake.write(base)
    done = _run_whole(base) if mistake.whole else work(base)
    assert done.failure is not None, done.log
    first = done.failure.splitlines()[0]
    said = first.replace(str(base), "/opt/ml").replace(f"uid {os.geteuid()}", "uid N")
    assert said == mistake.says, said
    assert done.code == mistake.code
    assert not done.models
    assert not done.output_data
    assert len(done.failure.encode()) < LIMIT
    assert first in done.log.splitlines()


def _run_whole(base: Path) -> Outcome:
    return run_train(base, environment={"NVIDIA_VISIBLE_DEVICES": "none"}, prefix=as_any_user())


def as_any_user() -> list[str]:
    """Return the words before a command that make root heed permissions as every other user has to."""
    if os.geteuid() != 0:
        return []
    ignoring = "-dac_override,-dac_read_search"
    return ["setpriv", f"--inh-caps={ignoring}", f"--bounding-set={ignoring}", "--"]


def table(columns: Columns, **more: list[object]) -> bytes:
    """Return columns as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(pa.table({**columns, **more}), buffer)
    return buffer.getvalue()
