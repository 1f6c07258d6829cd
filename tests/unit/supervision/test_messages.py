from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smxgb.errors import JobError, PlatformError, UserError
from smxgb.program import Program
from smxgb.supervision.messages import (
    Abort,
    Arrived,
    Beat,
    Bye,
    Done,
    Failed,
    Finished,
    Hello,
    Lead,
    Leave,
    Message,
    PhaseBegins,
    Planned,
    Rendezvous,
    Restart,
    Restarting,
    RoundDone,
    Scratch,
    Start,
    Stop,
    Succeeded,
    decode,
    encode,
)

VALUES = [
    PhaseBegins("load"),
    RoundDone(3, 10),
    Planned(has_slower=True),
    Beat(),
    Scratch(Path("/volume/a")),
    Start(Program("Dask worker 0", ["python", "-m", "smxgb"], {"CUDA_VISIBLE_DEVICES": "0"}, 30.0)),
    Succeeded("done"),
    Succeeded("done", (Path("/model/.smxgb-xgboost-model"), Path("/output/\udcff"))),
    Arrived({"mode": "dask", "workers": 4}),
    Stop(),
    Rendezvous({"dmlc_tracker_uri": "10.0.0.1", "dmlc_tracker_port": 9}, ("10.0.0.1", "10.0.0.2")),
    Lead("10.0.0.1", ("10.0.0.1", "10.0.0.2")),
    Stop(),
    Finished("Dask worker 0", "done"),
    Hello("algo-2", {"eta": "b6a5"}),
    Done(),
    Restarting(2),
    Leave(),
    Bye(),
]
FAILURES = [Failed, Abort, Restart]


@pytest.mark.parametrize("message", VALUES, ids=lambda message: type(message).__name__)
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    assert decode(encode(message)) == message


def test_every_kind_of_message_is_among_these() -> None:
    assert {*map(type, VALUES), *FAILURES} == set(Message.__subclasses__())


@given(
    st.lists(st.text(), min_size=1), st.sampled_from(FAILURES), st.sampled_from([UserError, PlatformError])
)
def test_a_failure_is_read_as_it_was_written(
    mistakes: list[str], kind: type[Failed | Abort | Restart], error: type[JobError]
) -> None:
    written = error(*mistakes, exit_code=137, origin="elsewhere", more=3, may_pass=True)
    read = decode(encode(Restart(written, 2) if issubclass(kind, Restart) else kind(written)))
    assert isinstance(read, kind)
    assert isinstance(read.error, error)
    assert read.error.as_json() == written.as_json()


@given(st.text())
def test_a_message_is_one_line(text: str) -> None:
    assert b"\n" not in encode(PhaseBegins(text))


def test_a_path_is_absolute_for_a_reader_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert decode(encode(Scratch(Path("spool")))) == Scratch(tmp_path / "spool")


@pytest.mark.parametrize(
    "line",
    [
        b"[1]",
        b"{}",
        b'{"PhaseBegins": {"name": "load"}}',
        b'["NoSuchKind", {}]',
        b'["PhaseBegins", {}]',
        b'["PhaseBegins", {"name": 7}]',
        b'["PhaseBegins", "load"]',
        b'["RoundDone", {"number": "3", "total": 10}]',
        b'["Failed", {"error": []}]',
        b'["Start", {"program": {"name": "a"}}]',
        b'["Succeeded", {"text": "done", "results": [7]}]',
        b'["Arrived", {"offer": null}]',
    ],
)
def test_json_that_is_no_known_message_is_none(line: bytes) -> None:
    assert decode(line) is None


@pytest.mark.parametrize("line", [b"", b"{nonsense", b"\xff", b'["PhaseBegins", {"na'])
def test_a_line_that_is_not_json_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSON and its encoding have one each
        decode(line)
