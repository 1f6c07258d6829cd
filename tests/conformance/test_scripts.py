"""Whole jobs that run a user's script, as SDK v2 starts them: what it gets, and how each end is told."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from tests.opt_ml import read_outcome, run_train, write_opt_ml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.opt_ml import Outcome

ROWS = b"1,2\n0,3\n"


def job(base: Path, script: str, name: str = "train.py", **hyperparameters: Any) -> Path:
    """Write a job as SDK v2 does: hyperparameters are JSON, the code is an archive."""
    archive = base / "sourcedir.tar.gz"
    pack(archive, {name: script})
    return script_job(base, name, archive, **hyperparameters)


def script_job(base: Path, name: str, submitted: object, **hyperparameters: Any) -> Path:
    settings = {"sagemaker_program": name, "sagemaker_submit_directory": str(submitted), **hyperparameters}
    given = {key: json.dumps(value) for key, value in settings.items()}
    return write_opt_ml(base, hyperparameters=given, channels={"train": ROWS})


def pack(archive: Path, files: Mapping[str, str]) -> None:
    with tarfile.open(archive, "w:gz") as opened:
        for name, text in files.items():
            data = dedent(text).encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            opened.addfile(info, io.BytesIO(data))


def test_a_script_gets_arguments_and_variables_as_from_awss_image(tmp_path: Path) -> None:
    script = """
        import json, os, sys
        here = {name: value for name, value in os.environ.items() if name.startswith("SM_")}
        found = {"arguments": sys.argv, "variables": here, "folder": os.getcwd()}
        with open(os.environ["SM_MODEL_DIR"] + "/found.json", "w") as file:
            json.dump(found, file)
    """
    given: dict[str, Any] = {
        "max-depth": 3,
        "n": 1,
        "objective": "reg:squarederror",
        "deep": {"b": 2, "a": True},
    }
    base = job(tmp_path, script, **given)
    done = run_train(base)
    assert done.code == 0, done.log
    found = json.loads(done.models["found.json"])
    assert found["folder"] == str(base / "code")
    assert found["arguments"] == [
        "train.py",
        *("--deep", "a=True,b=2"),
        *("--max-depth", "3"),
        *("-n", "1"),
        *("--objective", "reg:squarederror"),
    ]
    variables = found["variables"]
    expected = {
        "SM_HOSTS": '["algo-1"]',
        "SM_CURRENT_HOST": "algo-1",
        "SM_CHANNELS": '["train"]',
        "SM_CHANNEL_TRAIN": str(base / "input/data/train"),
        "SM_HP_MAX-DEPTH": "3",
        "SM_HP_OBJECTIVE": "reg:squarederror",
        "SM_HP_DEEP": '{"a":true,"b":2}',
        "SM_MODEL_DIR": str(base / "model"),
        "SM_OUTPUT_DATA_DIR": str(base / "output/data"),
        "SM_MODULE_NAME": "train",
        "SM_MODULE_DIR": str(base / "sourcedir.tar.gz"),
        "SM_USER_ENTRY_POINT": "train.py",
        "SM_LOG_LEVEL": "20",
        "SM_NETWORK_INTERFACE_NAME": "eth0",
        "SM_INPUT_CONFIG_DIR": str(base / "input/config"),
    }
    assert {name: variables.get(name) for name in expected} == expected
    assert json.loads(variables["SM_TRAINING_ENV"])["hyperparameters"]["max-depth"] == 3
    assert json.loads(variables["SM_USER_ARGS"]) == found["arguments"][1:]
    assert json.loads(variables["SM_RESOURCE_CONFIG"])["hosts"] == ["algo-1"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", '#!/bin/sh\necho "$@" > "$SM_MODEL_DIR/said"\n'),
        (
            "bin/any",
            """#!/usr/bin/env python3
import os, sys
open(os.environ["SM_MODEL_DIR"] + "/said", "w").write(" ".join(sys.argv[1:]) + "\\n")
""",
        ),
    ],
)
def test_a_shell_script_and_any_command_are_run(tmp_path: Path, name: str, text: str) -> None:
    done = run_train(job(tmp_path, text, name, eta=0.5))
    assert (done.code, done.models.get("said")) == (0, b"--eta 0.5\n"), done.log


@pytest.mark.parametrize("form", ["folder", "file", "channel archive", "channel folder", "in place"])
def test_code_comes_from_wherever_the_sdk_puts_it(tmp_path: Path, form: str) -> None:
    says = 'import os; from beside import WORD; open(os.environ["SM_MODEL_DIR"] + "/said", "w").write(WORD)'
    files = {"train.py": says, "beside.py": "WORD = 'hello'"}
    source = tmp_path / "source"
    places = {
        "folder": (source, source),
        "file": (source, f"file://{source}"),
        "channel archive": (tmp_path / "input/data/code", tmp_path / "input/data/code/sourcedir.tar.gz"),
        "channel folder": (tmp_path / "input/data/code", None),
        "in place": (tmp_path / "code", None),
    }
    folder, submitted = places[form]
    folder.mkdir(parents=True)
    if form == "channel archive":
        pack(folder / "sourcedir.tar.gz", files)
    else:
        for name, text in files.items():
            (folder / name).write_text(text)
    base = (
        script_job(tmp_path, "train.py", submitted)
        if submitted
        else write_opt_ml(
            tmp_path, hyperparameters={"sagemaker_program": "train.py"}, channels={"train": ROWS}
        )
    )
    done = run_train(base)
    assert (done.code, done.models.get("said")) == (0, b"hello"), done.log


ENDS = {
    "exit code": ("import sys; sys.exit(3)", 3, "UserError: the script train.py ended with exit code 3."),
    "words": (
        "import sys; sys.exit('no rows')",
        1,
        "UserError: the script train.py ended with exit code 1: no rows.",
    ),
    "killed": (
        "import os; os.kill(os.getpid(), 9)",
        137,
        "PlatformError: the script train.py was killed from outside: signal 9 (SIGKILL).",
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_script_is_that_of_the_job(tmp_path: Path, end: str) -> None:
    script, code, failure = ENDS[end]
    done = run_train(job(tmp_path, script, max_restarts=3))
    assert (done.code, done.failure) == (code, failure), done.log
    assert "started again" not in done.log


def test_the_failure_of_an_exception_has_the_last_lines_of_its_traceback(tmp_path: Path) -> None:
    script = """
        def check(label):
            raise ValueError(f"bad label {label}")

        check("x")
    """
    done = run_train(job(tmp_path, script))
    assert done.code == 1
    assert done.failure is not None
    assert done.failure.startswith(
        "UserError: the script train.py ended with exit code 1: ValueError: bad label x "
        f'(The traceback\'s last lines: File "{tmp_path}/code/train.py", line 5, in <module> / check("x") / '
    )
    assert 'line 3, in check / raise ValueError(f"bad label {label}"))' in done.failure
    assert done.log.count("Traceback (most recent call last):") == 1


def test_a_segmentation_fault_shows_where_it_was(tmp_path: Path) -> None:
    done = run_train(job(tmp_path, "import ctypes\nctypes.string_at(0)\n"))
    assert done.code == 128 + signal.SIGSEGV
    assert done.failure is not None
    assert "the script train.py crashed: signal 11 (SIGSEGV)" in done.failure
    assert "Segmentation fault" in done.log


def test_a_child_left_behind_does_not_keep_the_job(tmp_path: Path) -> None:
    script = """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("child", child.pid)
    """
    done = run_train(job(tmp_path, script), timeout=60)
    assert done.code == 0, done.log
    child = Path("/proc", done.log.partition("child ")[2].split()[0], "cmdline")
    # Who inherits it need not have reaped it yet.
    assert not child.exists() or not child.read_bytes()


def test_a_gigabyte_of_output_passes_through(tmp_path: Path) -> None:
    script = """
        import os, sys
        block = b"x" * 1023 + b"\\n"
        for fd in (1, 2):
            for _ in range(512):
                left = block * 1024
                while left:
                    left = left[os.write(fd, left):]
    """
    base = job(tmp_path, script)
    with subprocess.Popen(
        [sys.executable, "-m", "smxgb", "train"],
        env={**os.environ, "SAGEMAKER_BASE_DIR": str(base)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        size = 0
        assert process.stdout is not None
        while block := process.stdout.read(1 << 20):
            size += len(block)
    assert process.returncode == 0
    assert size >= 1 << 30


STOPPED = """
import os, signal, subprocess, sys, time
folder = os.environ["SM_MODEL_DIR"]

def save(name):
    def stop(*_):
        open(f"{folder}/{name}", "w").close()
        sys.exit(0)
    signal.signal(signal.SIGTERM, stop)

if sys.argv[1:] == ["child"]:
    save("child")
    print("ready", flush=True)
else:
    child = subprocess.Popen([sys.executable, __file__, "child"])
    save("parent")
time.sleep(600)
"""


@pytest.fixture
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A job whose script has said that it is ready."""
    script, name, settings = request.param
    base = job(tmp_path, script, name, **settings)
    with subprocess.Popen(
        [sys.executable, "-m", "smxgb", "train"],
        env={**os.environ, "SAGEMAKER_BASE_DIR": str(base)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("ready"):
                break
        yield process
        with suppress(ProcessLookupError):
            process.kill()


def ended(base: Path, process: subprocess.Popen[str]) -> Outcome:
    log, _ = process.communicate(timeout=60)
    return read_outcome(base, process.returncode, log)


@pytest.mark.parametrize("running", [(STOPPED, "train.py", {})], indirect=True)
def test_a_stop_reaches_the_script_and_its_children_which_save(
    tmp_path: Path, running: subprocess.Popen[str]
) -> None:
    running.send_signal(signal.SIGTERM)
    done = ended(tmp_path, running)
    assert (done.code, done.failure, set(done.models)) == (0, None, {"parent", "child"}), done.log
    assert "SIGTERM: the script is told to end, in at most 110 s." in done.log


SHELL = """#!/bin/sh
python3 - <<'END'
import os, signal, sys, time

def stop(*_):
    time.sleep(0.5)
    open(os.environ["SM_MODEL_DIR"] + "/saved", "w").close()
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
time.sleep(600)
END
"""


@pytest.mark.parametrize("running", [(SHELL, "train.sh", {})], indirect=True)
def test_the_command_of_a_shell_has_time_to_save_when_the_shell_itself_is_gone(
    tmp_path: Path, running: subprocess.Popen[str]
) -> None:
    running.send_signal(signal.SIGTERM)
    done = ended(tmp_path, running)
    assert (done.code, set(done.models)) == (128 + signal.SIGTERM, {"saved"}), done.log
    assert done.failure is not None
    assert "the job was stopped, and the script train.sh ended of signal 15 (SIGTERM)" in done.failure


DEAF = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: None)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("running", [(DEAF, "train.py", {"stop_timeout": 1})], indirect=True)
def test_a_script_that_does_not_end_is_killed_after_the_grace(
    tmp_path: Path, running: subprocess.Popen[str]
) -> None:
    begin = time.monotonic()
    running.send_signal(signal.SIGTERM)
    done = ended(tmp_path, running)
    assert time.monotonic() - begin >= 1
    assert done.code == 128 + signal.SIGTERM, done.log
    assert done.failure is not None
    assert "the job was stopped by SIGTERM in phase script" in done.failure


@pytest.mark.parametrize("kind", ["../outside", "link"])
def test_an_archive_that_leads_out_is_refused_and_nothing_runs(tmp_path: Path, kind: str) -> None:
    archive = tmp_path / "sourcedir.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        info = tarfile.TarInfo(kind)
        if kind == "link":
            info.type, info.linkname = tarfile.SYMTYPE, "/etc"
        opened.addfile(info)
        opened.addfile(tarfile.TarInfo("train.py"))
    done = run_train(script_job(tmp_path, "train.py", archive))
    assert done.code == 2
    assert done.failure is not None
    assert f"{archive} holds {kind!r}, which lies or leads outside of the code's folder" in done.failure
    assert not (tmp_path / "outside").exists()


MISTAKES = {
    "../train.py": "sagemaker_program='../train.py' is no name of a program",
    "absent.py": "sagemaker_program=absent.py: the code holds no such file, but train.py.",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_program_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    pack(tmp_path / "sourcedir.tar.gz", {"train.py": ""})
    done = run_train(script_job(tmp_path, name, tmp_path / "sourcedir.tar.gz"))
    assert done.code == 2
    assert done.failure is not None
    assert MISTAKES[name] in done.failure


def wheel(folder: Path, name: str, version: str, text: str, requires: str | None = None) -> None:
    """Write a wheel of one module (the binary distribution format of Python's packages)."""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Dist: {requires}\n" if requires else ""
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as opened:
        opened.writestr(f"{name}.py", text)
        opened.writestr(f"{info}/METADATA", metadata)
        opened.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        opened.writestr(f"{info}/RECORD", "")


SAYS_NUMPY = """
import os, numpy, xgboost
open(os.environ["SM_MODEL_DIR"] + "/said", "w").write(numpy.__version__)
"""


def isolated(base: Path, requirements: str, script: str = SAYS_NUMPY) -> Path:
    """Write a job without a network, whose code is a channel that holds wheels too."""
    code = base / "input" / "data" / "code"
    code.mkdir(parents=True)
    (code / "train.py").write_text(script)
    (code / "requirements.txt").write_text(requirements)
    return script_job(base, "train.py", code)


def test_requirements_are_seen_by_the_script_alone(tmp_path: Path) -> None:
    base = isolated(
        tmp_path,
        "--find-links .\npydantic==0.1\nextra\n",
        "import os, pydantic, extra, xgboost\n"
        'open(os.environ["SM_MODEL_DIR"] + "/said", "w").write(pydantic.OLD)\n',
    )
    code = base / "input/data/code"
    wheel(code, "pydantic", "0.1", "OLD = 'the old one'")
    wheel(code, "extra", "1.0", "", requires="numpy")
    done = run_train(base)
    assert (done.code, done.models.get("said")) == (0, b"the old one"), done.log
    assert "Notice: requirements.txt: smxgb " in done.log  # pip names who needs another one
    import pydantic  # noqa: PLC0415

    assert not hasattr(pydantic, "OLD")


def test_what_cannot_be_installed_without_a_network_is_one_sentence(tmp_path: Path) -> None:
    done = run_train(isolated(tmp_path, "not-there==1.0\n"))
    assert done.code == 2
    assert done.failure is not None
    assert done.failure.startswith(
        "UserError: requirements.txt can't be installed: Could not find a version that satisfies the "
        "requirement not-there==1.0 (from versions: none). Without a network there is only what"
    )


def test_requirements_that_exclude_each_other_are_one_sentence(tmp_path: Path) -> None:
    base = isolated(tmp_path, "--find-links .\none\ntwo\n")
    code = base / "input/data/code"
    wheel(code, "one", "1.0", "", requires="three==1")
    wheel(code, "two", "1.0", "", requires="three==2")
    for version in ("1", "2"):
        wheel(code, "three", version, "")
    done = run_train(base)
    assert done.code == 2
    assert done.failure is not None
    assert "requirements.txt can't be installed: Cannot install" in done.failure


def test_an_index_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    pack(
        tmp_path / "sourcedir.tar.gz",
        {"train.py": "", "requirements.txt": "not-there==1.0\n"},
    )
    base = script_job(tmp_path, "train.py", tmp_path / "sourcedir.tar.gz")
    done = run_train(
        base,
        environment={
            "PIP_INDEX_URL": "http://127.0.0.1:9/",
            "PIP_RETRIES": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_FIND_LINKS": "",
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_NO_INDEX": "",
        },
    )
    assert done.code == 3, done.log
    assert done.failure is not None
    assert "requirements.txt can't be installed, for the package index can't be reached: " in done.failure
