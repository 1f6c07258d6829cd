from __future__ import annotations

import bz2
import gzip
from typing import TYPE_CHECKING

import pytest

from smxgb.errors import UserError
from smxgb.job.content_types import detect_content_type

if TYPE_CHECKING:
    from pathlib import Path

CSV = b"1,2.5,3\n0,1,2\n"
LIBSVM = b"1 0:2.5 7:1e-3\n0 1:1\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", LIBSVM, "csv"),
        ("a.parquet", b"PAR1....", "parquet"),
        ("part-0", b"PAR1....", "parquet"),
        ("part-0", CSV, "csv"),
        ("part-0", LIBSVM, "libsvm"),
        ("part-0", b"1 qid:3 1:0.5\n", "libsvm"),
        ("part-0", b"\x0a\x23\xd7\xce\0\0", "recordio-protobuf"),
        ("part-0", b"3\n4\n", "csv"),
        ("part-0", b"12:30,5\n", "csv"),
        ("part-0", b"\xef\xbb\xbf" + LIBSVM, "libsvm"),
        ("a.csv.gz", gzip.compress(LIBSVM), "csv"),
        ("a.LIBSVM.ZST", b"\x28\xb5\x2f\xfd", "libsvm"),
        ("part-0.gz", gzip.compress(LIBSVM), "libsvm"),
        ("part-0.bz2", bz2.compress(LIBSVM * 9000), "libsvm"),
        ("part-0.gz", gzip.compress(b"\x0a\x23\xd7\xce\0\0"), "recordio-protobuf"),
        ("part-0.gz", gzip.compress(LIBSVM)[:-9], "csv"),
    ],
)
def test_a_missing_content_type_is_told_by_extension_then_by_first_bytes(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    (tmp_path / name).write_bytes(content)
    content_type, why = detect_content_type("train", sorted(tmp_path.iterdir()))
    assert content_type == expected
    assert name in why


def test_two_types_in_one_channel_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(CSV)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"csv \(a\.csv\) and parquet \(b\.parquet\)"):
        detect_content_type("train", sorted(tmp_path.iterdir()))
