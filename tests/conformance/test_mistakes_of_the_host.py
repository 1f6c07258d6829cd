"""Bad configuration files, folders and disks: what SageMaker then shows. One of each kind is a whole job."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.mistakes import ROWS, Mistake, assert_fails

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIG = "input/config"
DATA = "input/data/train/data.csv"


def write(path: str, content: bytes) -> Callable[[Path], None]:
    def spoil(base: Path) -> None:
        place = base / path
        if place.is_dir():
            shutil.rmtree(place)
        place.write_bytes(content)

    return spoil


def folder(path: str) -> Callable[[Path], None]:
    def spoil(base: Path) -> None:
        (base / path).unlink(missing_ok=True)
        (base / path).mkdir()

    return spoil


def fifo(path: str) -> Callable[[Path], None]:
    def spoil(base: Path) -> None:
        (base / path).unlink(missing_ok=True)
        os.mkfifo(base / path)

    return spoil


def link(path: str, target: str) -> Callable[[Path], None]:
    def spoil(base: Path) -> None:
        (base / path).unlink(missing_ok=True)
        (base / path).symlink_to(target)

    return spoil


def mode(path: str, bits: int) -> Callable[[Path], None]:
    return lambda base: (base / path).chmod(bits)


def spoil_all(base: Path) -> None:
    for name in ("hyperparameters", "inputdataconfig", "resourceconfig", "checkpointconfig"):
        write(f"{CONFIG}/{name}.json", b"x")(base)


TABLE = {
    "settings that are no JSON": Mistake(
        "UserError: /opt/ml/input/config/hyperparameters.json, line 1, column 16: this is not JSON "
        "(Illegal trailing comma before end of object). The file must hold one object, such as "
        '{"name": "value"}.',
        spoil=write(f"{CONFIG}/hyperparameters.json", b'{"num_round": 5,}'),
        whole=True,
    ),
    "settings that are a list": Mistake(
        "UserError: /opt/ml/input/config/hyperparameters.json, line 1, column 1: the file holds a "
        'list. It must hold one object, such as {"name": "value"}.',
        spoil=write(f"{CONFIG}/hyperparameters.json", b'["num_round"]'),
    ),
    "settings in another encoding": Mistake(
        "UserError: /opt/ml/input/config/hyperparameters.json: byte 21 is not UTF-8. Save the file "
        "as UTF-8 text.",
        spoil=write(f"{CONFIG}/hyperparameters.json", '{"label_column": "größe"}'.encode("latin-1")),
    ),
    "settings that are a folder": Mistake(
        "UserError: /opt/ml/input/config/hyperparameters.json is a folder, not a file. Docker makes"
        " one if the file to be mounted is missing: check the path on the host.",
        spoil=folder(f"{CONFIG}/hyperparameters.json"),
    ),
    "settings that are a FIFO": Mistake(
        "UserError: /opt/ml/input/config/hyperparameters.json is a FIFO, a socket or a device: it "
        "must be a plain file.",
        spoil=fifo(f"{CONFIG}/hyperparameters.json"),
    ),
    "settings that can't be read": Mistake(
        "PlatformError: /opt/ml/input/config/hyperparameters.json: permission denied to the user "
        "that the container runs as (uid N): change the owner or mode on the host, or run the "
        "container as another user.",
        spoil=mode(f"{CONFIG}/hyperparameters.json", 0),
        code=3,
        whole=True,
    ),
    "one setting twice": Mistake(
        "UserError: /opt/ml/input/config/hyperparameters.json: 'eta' stands there more than once: keep one "
        "of them.",
        spoil=write(f"{CONFIG}/hyperparameters.json", b'{"num_round": "2", "eta": "0.1", "eta": "0.9"}'),
    ),
    "no settings": Mistake(
        "UserError: num_round is missing: set it to a whole number, 1 or more.",
        spoil=write(f"{CONFIG}/hyperparameters.json", b""),
        whole=True,
    ),
    "channels that are no JSON": Mistake(
        "UserError: /opt/ml/input/config/inputdataconfig.json, line 1, column 1: this is not JSON "
        '(Expecting value). The file must hold one object, such as {"name": "value"}.',
        spoil=write(f"{CONFIG}/inputdataconfig.json", b"train: text/csv\n"),
    ),
    "hosts that are no JSON": Mistake(
        "UserError: /opt/ml/input/config/resourceconfig.json, line 1, column 2: this is not JSON "
        "(Expecting property name enclosed in double quotes). The file must hold one object, such "
        'as {"name": "value"}.',
        spoil=write(f"{CONFIG}/resourceconfig.json", b"{'hosts': []}"),
    ),
    "checkpoints that are no JSON": Mistake(
        "UserError: /opt/ml/input/config/checkpointconfig.json, line 1, column 1: this is not JSON "
        '(Expecting value). The file must hold one object, such as {"name": "value"}.',
        spoil=write(f"{CONFIG}/checkpointconfig.json", b"/opt/ml/x"),
    ),
    "all configuration files spoilt": Mistake(
        "UserError: 4 mistakes. 1. /opt/ml/input/config/resourceconfig.json, line 1, column 1: this"
        ' is not JSON (Expecting value). The file must hold one object, such as {"name": "value"}.',
        spoil=spoil_all,
    ),
    "a host that is not in the list": Mistake(
        'UserError: /opt/ml/input/config/resourceconfig.json: current_host is "algo-3". It must be '
        "one of the hosts: algo-1.",
        resourceconfig={"current_host": "algo-3", "hosts": ["algo-1"]},
        whole=True,
    ),
    "no input folder": Mistake(
        "UserError: 2 mistakes. 1. num_round is missing: set it to a whole number, 1 or more.",
        spoil=lambda base: shutil.rmtree(base / "input"),
    ),
    "a FIFO in a channel": Mistake(
        "UserError: channel 'train': data.csv is a FIFO, a socket or a device: a channel holds plain files.",
        spoil=fifo(DATA),
    ),
    "a folder that is named like a file": Mistake(
        "UserError: channel 'train' holds no data file: check the channel's S3 address and that "
        "its files have rows.",
        spoil=folder(DATA),
    ),
    "a channel that is a file": Mistake(
        "UserError: channel 'train': /opt/ml/input/data/train is a file; it must be a folder with "
        "the channel's files.",
        spoil=write("input/data/train", ROWS),
    ),
    "a link to nowhere": Mistake(
        "UserError: channel 'train': data.csv is a link to /no/such/file, which is not there: "
        "link to a file, or remove it.",
        spoil=link(DATA, "/no/such/file"),
    ),
    "a file that can't be read": Mistake(
        "PlatformError: /opt/ml/input/data/train/data.csv: permission denied to the user that the "
        "container runs as (uid N): change the owner or mode on the host, or run the container as "
        "another user.",
        spoil=mode(DATA, 0),
        code=3,
        whole=True,
    ),
    "a channel that can't be read": Mistake(
        "PlatformError: /opt/ml/input/data/train: permission denied to the user that the container "
        "runs as (uid N): change the owner or mode on the host, or run the container as another "
        "user.",
        spoil=mode("input/data/train", 0),
        code=3,
        whole=True,
    ),
    "a model folder that can't be written": Mistake(
        "PlatformError: /opt/ml/model: permission denied to the user that the container runs as "
        "(uid N): change the owner or mode on the host, or run the container as another user.",
        spoil=mode("model", 0o500),
        code=3,
        whole=True,
    ),
    "a file in place of the model folder": Mistake(
        "PlatformError: /opt/ml/model can't be made a folder: a file is in its place, or in that of"
        " a folder above. Remove the file.",
        spoil=write("model", b""),
        code=3,
    ),
    "a folder in place of the model": Mistake(
        "PlatformError: /opt/ml/model/xgboost-model is a folder, in the place of the model's file: "
        "remove it.",
        spoil=folder("model/xgboost-model"),
        code=3,
        whole=True,
    ),
    "an output folder that can't be written": Mistake(
        "PlatformError: /opt/ml/output/data: permission denied to the user that the container runs "
        "as (uid N): change the owner or mode on the host, or run the container as another user.",
        spoil=mode("output/data", 0o500),
        code=3,
        whole=True,
    ),
    "a file in place of the output data": Mistake(
        "PlatformError: /opt/ml/output/data can't be made a folder: a file is in its place, or in "
        "that of a folder above. Remove the file.",
        spoil=write("output/data", b""),
        code=3,
    ),
    "settings that are a link to nowhere": Mistake(
        "UserError: /opt/ml/input/config/hyperparameters.json is a link to /no/such/file, which is not "
        "there: link to a file, or remove it.",
        spoil=link(f"{CONFIG}/hyperparameters.json", "/no/such/file"),
    ),
    "settings that are a link to itself": Mistake(
        "UserError: /opt/ml/input/config/hyperparameters.json is a link to hyperparameters.json, which "
        "is not there: link to a file, or remove it.",
        spoil=link(f"{CONFIG}/hyperparameters.json", "hyperparameters.json"),
    ),
    "a spool folder that is not there": Mistake(
        "UserError: spool_dir='/no/such/folder' is no folder that can be written: give one that exists, "
        "or leave it out.",
        {"spool_dir": "/no/such/folder"},
        whole=True,
    ),
    "a spool folder that no name can be": Mistake(
        "UserError: spool_dir='a\\x00b' is no folder that can be written: give one that exists, or leave "
        "it out.",
        {"spool_dir": "a\0b"},
    ),
    "a spool folder beside other mistakes": Mistake(
        "UserError: 4 mistakes. 1. max_depth='x' is not allowed: it must be a whole number, 0 or more.",
        {
            "max_depth": "x",
            "spool_dir": "/proc",
            "device": "cuda",
            "_tuning_objective_metric": "validation:rmse",
        },
    ),
    "a spool folder that can't be written": Mistake(
        "UserError: spool_dir='/proc' is no folder that can be written: give one that exists, or "
        "leave it out.",
        {"spool_dir": "/proc"},
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_bad_file_or_folder_ends_the_job_with_one_plain_sentence(name: str, tmp_path: Path) -> None:
    assert_fails(TABLE[name], tmp_path)
