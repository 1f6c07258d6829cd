"""Side files: weights, groups and the like that other programs keep beside a file of rows, one to a line.

The names are those of XGBoost's text loader (`train.txt.weight`, `train.txt.group`) and of LightGBM
(`train.txt.weight`, `train.txt.query`, `train.txt.init`). Read as rows, each number would be a label.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes
from smxgb.job.compression import SUFFIXES
from smxgb.job.content_types import EXTENSIONS
from smxgb.wording import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

WEIGHTS = "write the weights into the rows (label:weight in libsvm, else a column, named by weight_column)"
GROUPS = "write the groups into the rows (qid: in libsvm, else a column of their ids, named by group_column)"
SCORES = "initial scores are not read (base_score sets one for all rows)"
CURES: Mapping[str, str] = {
    ".weight": WEIGHTS,
    ".weights": WEIGHTS,
    ".group": GROUPS,
    ".query": GROUPS,
    ".base_margin": SCORES,
    ".init": SCORES,
}


def refuse_side_files(folder: Path, files: Sequence[Path]) -> None:
    """Raise UserError with the files of a channel's folder that are named as side files of others."""
    mistakes = Mistakes()
    plain = {_unpacked(file): file for file in files}
    for path, file in plain.items():
        rows = path.with_suffix("")
        if path.suffix.lower() in CURES and (rows in plain or rows.suffix.lower() in EXTENSIONS):
            mistakes.add(
                f"channel '{folder.name}': {printable(str(file.relative_to(folder)))} stands beside "
                f"{printable(rows.name)}, holds no rows, and can't be read: "
                f"{CURES[path.suffix.lower()]}, and take the file out of the channel."
            )
    mistakes.raise_any()


def _unpacked(file: Path) -> PurePath:
    return PurePath(file.with_suffix("") if file.suffix.lower() in SUFFIXES else file)
