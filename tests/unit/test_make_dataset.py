from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

PROGRAM = Path(__file__).parents[2] / "benchmarks/make_dataset.py"


def make(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_so_many_files_of_so_many_megabytes(tmp_path: Path, form: str) -> None:
    done = make(tmp_path / "data", "--files", "3", "--megabytes", "1.5", "--format", form)
    assert done.returncode == 0, done.stderr
    sizes = [path.stat().st_size for path in files(tmp_path / "data")]
    assert sizes == pytest.approx([1.5e6] * 3, rel=0.03)
    assert [path.name for path in files(tmp_path / "data")] == [f"part-0000{n}.{form}" for n in range(3)]
    assert "100%" in done.stderr


def test_a_csv_file_has_a_label_and_no_header_and_no_index(tmp_path: Path) -> None:
    assert make(tmp_path / "data", "--files", "1", "--megabytes", "0.2", "--columns", "5").returncode == 0
    table = pd.read_csv(files(tmp_path / "data")[0], header=None)
    assert table.shape[1] == 6
    assert set(table[0]) == {0, 1}
    assert table.dtypes.map(lambda kind: kind.kind in "if").all()


def test_generated_files_differ_and_one_model_fits_them_all(tmp_path: Path) -> None:
    assert make(tmp_path / "data", "--files", "2", "--megabytes", "1").returncode == 0
    first, second = (pd.read_csv(path, header=None) for path in files(tmp_path / "data"))
    assert not first.equals(second)
    model = LogisticRegression().fit(first.iloc[:, 1:], first[0])
    assert model.score(second.iloc[:, 1:], second[0]) > 0.75


def test_copies_are_the_same_bytes(tmp_path: Path) -> None:
    assert make(tmp_path / "data", "--files", "4", "--megabytes", "0.1", "--copies").returncode == 0
    assert len({path.read_bytes() for path in files(tmp_path / "data")}) == 1


def test_a_table_is_repeated_until_the_file_is_full(tmp_path: Path) -> None:
    table = pd.DataFrame({"y": [0, 1, 1], "a": [10, 20, 30]})
    table.to_csv(tmp_path / "table.csv", index=False)
    options = ("--files", "2", "--megabytes", "0.05", "--table", tmp_path / "table.csv")
    assert make(tmp_path / "data", *options).returncode == 0
    first, second = (pd.read_csv(path, header=None) for path in files(tmp_path / "data"))
    assert first.equals(second)
    assert first.iloc[:6].to_numpy().tolist() == [[0, 10], [1, 20], [1, 30]] * 2
    assert files(tmp_path / "data")[0].stat().st_size == pytest.approx(50_000, rel=0.03)


def test_a_place_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("1,2\n")
    done = make(tmp_path, "--files", "1", "--megabytes", "0.1")
    assert done.returncode == 1
    assert "holds files already" in done.stderr
    assert [path.name for path in files(tmp_path)] == ["mine.csv"]


@pytest.mark.parametrize("wrong", [("--files", "0"), ("--megabytes", "-1"), ("--megabytes", "5001")])
def test_an_impossible_size_is_refused(tmp_path: Path, wrong: tuple[str, str]) -> None:
    done = make(tmp_path / "data", *wrong)
    assert done.returncode == 1
    assert done.stderr.startswith("scripts/make_dataset: ")
    assert not (tmp_path / "data").exists()
