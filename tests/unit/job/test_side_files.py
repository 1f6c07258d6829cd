from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smxgb.errors import UserError
from smxgb.job.channels import find_channels

if TYPE_CHECKING:
    from pathlib import Path


def found(tmp_path: Path, names: list[str], content_type: str = "text/libsvm") -> object:
    for name in names:
        (tmp_path / "train" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "train" / name).write_text("1 0:2 1:3\n")
    return find_channels({"train": {"ContentType": content_type}}, {"train": tmp_path / "train"})


@pytest.mark.parametrize(
    ("names", "cure"),
    [
        (["t.libsvm", "t.libsvm.weight"], "label:weight in libsvm"),
        (["t.libsvm", "t.libsvm.group"], "qid: in libsvm"),
        (["t.libsvm", "t.libsvm.query"], "qid: in libsvm"),
        (["t.csv", "t.csv.weight"], "named by weight_column"),
        (["rank.train", "rank.train.query"], "qid: in libsvm"),
        (["deep/part-0", "deep/part-0.weight"], "label:weight in libsvm"),
        (["t.svm.gz", "t.svm.weight.gz"], "label:weight in libsvm"),
        (["other.svm", "t.svm.base_margin"], "initial scores are not read"),
        (["t.libsvm", "t.libsvm.init"], "initial scores are not read"),
    ],
)
def test_a_side_file_is_refused_with_the_cure(tmp_path: Path, names: list[str], cure: str) -> None:
    with pytest.raises(UserError) as caught:
        found(tmp_path, names)
    (mistake,) = caught.value.mistakes
    assert mistake.startswith(f"channel 'train': {names[1]} stands beside ")
    assert cure in mistake


@pytest.mark.parametrize("name", ["data.weight", "query", "train.group"])
def test_a_name_alone_is_no_side_file(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, [name, "other"])
