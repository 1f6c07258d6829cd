from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smxgb.environment import Hosts, Paths, child_environ, free_bytes, read_hosts, read_json
from smxgb.errors import UserError


def config(base: Path, name: str, text: str) -> Paths:
    paths = Paths(base)
    paths.config.mkdir(parents=True)
    (paths.config / name).write_text(text)
    return paths


def hosts(base: Path, value: Any) -> Hosts:
    return read_hosts(config(base, "resourceconfig.json", json.dumps(value)))


def test_the_base_folder_is_opt_ml_unless_the_environment_names_another() -> None:
    assert Paths.from_environ({}).failure == Path("/opt/ml/output/failure")
    assert Paths.from_environ({"SAGEMAKER_BASE_DIR": "/b"}).config == Path("/b/input/config")


def test_a_missing_or_empty_configuration_file_is_an_empty_object(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text(" \n")
    assert read_json(tmp_path / "missing.json") == {}
    assert read_json(tmp_path / "empty.json") == {}


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": "1"}')
    assert read_json(tmp_path / "a.json") == {"a": "1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{\n  "a": 1,\n  b: 2}', "a.json, line 3, column 3: this is not JSON"),
        (b'["a"]', "a.json, line 1, column 1: the file holds a list. It must hold one object"),
        (b'"a"', "holds a text."),
        (b"12", "holds 12."),
        (b"null", "holds null."),
        (b'{"a": "\xff"}', "a.json: byte 8 is not UTF-8."),
        (b'{"a": 1, "b": {"c": 2, "c": 2}}', "a.json: 'c' stands there more than once: keep one of them."),
        (b'{"a": ' + b"1" * 5000 + b"}", "a.json: this is not JSON that can be read"),
    ],
)
def test_a_configuration_file_that_can_not_be_read_is_named_with_the_place(
    tmp_path: Path, text: bytes, words: str
) -> None:
    (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(UserError) as raised:
        read_json(tmp_path / "a.json")
    assert words in str(raised.value)


def test_a_folder_in_the_place_of_a_configuration_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(UserError, match="is a folder, not a file"):
        read_json(tmp_path / "a.json")


def test_without_a_resource_configuration_there_is_one_host(tmp_path: Path) -> None:
    assert read_hosts(Paths(tmp_path)) == Hosts("algo-1", ("algo-1",))


def test_the_hosts_are_sorted(tmp_path: Path) -> None:
    value = {"current_host": "algo-2", "hosts": ["algo-2", "algo-1"], "network_interface_name": "eth0"}
    assert hosts(tmp_path, value) == Hosts("algo-2", ("algo-1", "algo-2"), "eth0")


@pytest.mark.parametrize("value", [{}, {"hosts": []}, {"hosts": ["algo-1"]}, {"current_host": "algo-1"}])
def test_with_no_key_or_one_key_there_is_one_host(tmp_path: Path, value: Any) -> None:
    assert hosts(tmp_path, value) == Hosts("algo-1", ("algo-1",))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"hosts": "algo-1"}, 'hosts is "algo-1". It must be a list of host names.'),
        ({"hosts": [1]}, "hosts is [1]."),
        ({"hosts": ["a", "b"]}, "current_host is null. It must be one of the hosts: a, b."),
        ({"hosts": ["a", "b"], "current_host": "c"}, 'current_host is "c".'),
        ({"hosts": ["a", "b..c"], "current_host": "a"}, '"b..c" is no name of a host'),
        ({"hosts": ["a", "b" * 64], "current_host": "a"}, f'"{"b" * 64}" is no name of a host'),
        ({"hosts": ["a", "b\0"], "current_host": "a"}, '"b\\u0000" is no name of a host'),
        ({"hosts": ["a", "\ud800"], "current_host": "a"}, '"\\ud800" is no name of a host'),
    ],
)
def test_hosts_that_make_no_sense_are_refused(tmp_path: Path, value: Any, words: str) -> None:
    with pytest.raises(UserError) as raised:
        hosts(tmp_path, value)
    assert words in str(raised.value)


def test_the_free_bytes_of_a_folder_that_does_not_exist_yet_are_those_of_its_volume(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b") == pytest.approx(free_bytes(tmp_path), rel=0.1)
    assert free_bytes(tmp_path) > 0


def test_openmp_threads_of_the_work_do_not_spin_unless_the_user_wants_it() -> None:
    environ = child_environ({"A": "1"})
    assert environ["A"] == "1"
    assert environ["OMP_WAIT_POLICY"] == "passive"
    assert child_environ({"OMP_WAIT_POLICY": "active"})["OMP_WAIT_POLICY"] == "active"
