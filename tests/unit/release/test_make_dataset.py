from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

PROGRAM = Path(__file__).parents[3] / "scripts/make_dataset"


def make(*arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    command = [PROGRAM, *arguments]
    return subprocess.run(command, env=kept | environ, capture_output=True, text=True, check=False)


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


def test_two_sets_of_different_parts_share_no_row_and_one_rule(tmp_path: Path) -> None:
    assert make(tmp_path / "train", "--files", "3", "--megabytes", "0.3").returncode == 0
    options = ("--files", "1", "--megabytes", "0.3", "--first-part", "3")
    assert make(tmp_path / "validation", *options).returncode == 0
    assert [path.name for path in files(tmp_path / "validation")] == ["part-00003.csv"]
    train = pd.concat([pd.read_csv(path, header=None) for path in files(tmp_path / "train")])
    validation = pd.read_csv(files(tmp_path / "validation")[0], header=None)
    features = list(range(1, 29))
    assert not len(train.merge(validation, on=features))
    model = LogisticRegression().fit(train[features], train[0])
    assert model.score(validation[features], validation[0]) > 0.75


def test_the_parts_of_a_table_of_ones_own_are_not_numbered(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("y,a\n0,1\n")
    done = make(tmp_path / "data", "--table", tmp_path / "table.csv", "--first-part", "1")
    assert done.returncode == 1
    assert "without --table, whose rows are the same in every file" in done.stderr


def test_names_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,y\n10,0\n20,1\n")
    options = ("--files", "1", "--megabytes", "0.01", "--table", tmp_path / "table.csv", "--header")
    done = make(tmp_path / "data", *options)
    table = pd.read_csv(files(tmp_path / "data")[0])
    assert table[:4].to_dict("list") == {"a": [10, 20, 10, 20], "y": [0, 1, 0, 1]}
    assert done.stdout == f"1 file of {len(table):,} rows each in {tmp_path}/data\n"


def test_without_credentials_the_cure_is_named(tmp_path: Path) -> None:
    done = make("s3://bucket/train", AWS_EC2_METADATA_DISABLED="true", HOME=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith(
        "scripts/make_dataset: s3://bucket/train: there are no AWS credentials: run `aws configure`"
    )


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
