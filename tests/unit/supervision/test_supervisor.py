from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from smxgb.errors import UserError
from smxgb.supervision.child import STOPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SUPERVISOR = """
import sys
from pathlib import Path
from smxgb.environment import process_environ
from smxgb.supervision.supervisor import supervise
sys.exit(supervise(process_environ(), (sys.executable, "-c", sys.argv[1]), Path(sys.argv[2])))
"""

WORK = """
import os, signal, subprocess, sys, time
from pathlib import Path
from smxgb.errors import AlgorithmError, PlatformError, UserError
from smxgb.supervision.link import Link, die_with_parent
from smxgb.supervision.messages import Failed, PhaseBegins, Planned, Scratch, Stop, Succeeded
fd = int(sys.argv[-1])
link = Link(fd)
die_with_parent(fd)
base = Path(os.environ["SAGEMAKER_BASE_DIR"])


def fail(*mistakes):
    link.send(Failed(UserError(*mistakes)))


"""


@dataclass(frozen=True)
class Job:
    """A folder for /opt/ml, a root for /sys, and what the supervisor is to start."""

    base: Path
    root: Path

    @property
    def failure(self) -> str | None:
        path = self.base / "output" / "failure"
        return path.read_text() if path.exists() else None

    @property
    def results(self) -> list[Path]:
        """The files of the model and output folders, without the failure file."""
        files = [path for name in ("model", "output") for path in (self.base / name).rglob("*")]
        return [path for path in files if path.is_file() and path.name != "failure"]

    def write(self, name: str, text: str = "") -> Path:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @contextmanager
    def running(self, work: str, before: str = "") -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [sys.executable, "-c", before + SUPERVISOR, WORK + work, str(self.root)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"SAGEMAKER_BASE_DIR": str(self.base)},
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, work: str, before: str = "") -> tuple[int, str, str]:
        with self.running(work, before) as process:
            out, err = process.communicate(timeout=30)
            return process.returncode, out, err


@pytest.fixture
def job(tmp_path: Path) -> Job:
    job = Job(tmp_path / "ml", Path("/"))
    job.write("input/config/hyperparameters.json", '{"max_restarts": "0"}')
    return job


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def test_a_job_that_says_it_succeeded_ends_well(job: Job) -> None:
    code, out, err = job.run("link.send(PhaseBegins('train')); link.send(Succeeded('Done: model written.'))")
    assert (code, out, err, job.failure) == (0, "Done: model written.\n", "", None)


def test_an_end_without_a_word_of_success_is_a_fault_of_ours(job: Job) -> None:
    code, _, err = job.run("link.send(PhaseBegins('save'))")
    assert code == 1
    assert job.failure == err.rstrip()
    assert job.failure.startswith(
        "AlgorithmError: the work ended as if all was well in phase save, without a word"
    )


@pytest.mark.parametrize(("kind", "code"), [("UserError", 2), ("PlatformError", 3), ("AlgorithmError", 1)])
def test_a_reported_failure_has_the_exit_code_of_its_kind(job: Job, kind: str, code: int) -> None:
    found, _, err = job.run(f"link.send(Failed({kind}('a is wrong.', 'b is wrong.'))); os._exit(99)")
    assert found == code
    assert job.failure == f"{kind}: 2 mistakes. 1. a is wrong.\n2. b is wrong."
    assert err.rstrip() == job.failure


def test_a_reported_failure_counts_even_if_the_work_ends_well_or_is_killed(job: Job) -> None:
    assert job.run("fail('a')")[0] == 2
    assert job.run("fail('a'); os.kill(os.getpid(), 9)")[0] == 2


def test_success_needs_a_good_end_too(job: Job) -> None:
    assert job.run("link.send(Succeeded('done')); os._exit(5)")[0] == 1
    assert job.failure is not None
    assert "with exit code 5" in job.failure


def test_an_exception_that_nobody_reported_shows_in_the_log(job: Job) -> None:
    code, _, err = job.run("link.send(PhaseBegins('load')); {}['column']")
    assert code == 1
    assert "KeyError: 'column'" in err
    assert job.failure == (
        "AlgorithmError: the work ended with exit code 1 in phase load, without a word of success or "
        "failure: see the log."
    )


@pytest.mark.parametrize(
    "number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE]
)
def test_a_crash_of_native_code_names_phase_and_signal(job: Job, number: signal.Signals) -> None:
    code, _, err = job.run(f"link.send(PhaseBegins('matrix')); os.kill(os.getpid(), {int(number)})")
    assert code == 128 + number
    assert job.failure is not None
    assert job.failure.startswith(
        f"AlgorithmError: native code crashed in phase matrix: signal {int(number)} ("
    )
    assert "Fatal Python error" in err


def test_work_that_is_killed_from_outside_is_no_lack_of_memory(job: Job) -> None:
    assert job.run("link.send(PhaseBegins('train')); os.kill(os.getpid(), 9)")[0] == 137
    assert job.failure == (
        "PlatformError: the work was killed from outside in phase train: signal 9 (SIGKILL). "
        "Start the job again."
    )


@pytest.mark.parametrize(
    ("limit", "counter"),
    [
        ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.events"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.oom_control"),
    ],
)
def test_work_that_the_kernel_killed_for_memory_names_limit_phase_and_cure(
    tmp_path: Path, limit: str, counter: str
) -> None:
    job = Job(tmp_path / "ml", tmp_path / "root")
    kills = job.root / counter
    kills.parent.mkdir(parents=True)
    kills.write_text("oom_kill 1\n")
    (job.root / limit).write_text(f"{725 * 1024**2}\n")
    work = f"link.send(PhaseBegins('matrix')); Path({str(kills)!r}).write_text('oom_kill 2')"
    assert job.run(f"{work}; os.kill(os.getpid(), 9)")[0] == 3
    assert job.failure == (
        "PlatformError: out of memory: the kernel killed the work in phase matrix, at the container's memory "
        "limit of 725 MiB. Use an instance type with more memory, or fewer rows or columns."
    )


@pytest.mark.parametrize(("then", "code"), [("link.send(Succeeded('done'))", 0), ("kill()", 137)])
def test_work_that_ran_out_of_memory_is_started_again_with_the_next_plan(
    tmp_path: Path, then: str, code: int
) -> None:
    job = Job(tmp_path / "ml", tmp_path / "root")
    counter = job.root / "sys/fs/cgroup/memory.events"
    counter.parent.mkdir(parents=True)
    counter.write_text("oom_kill 1\n")
    work = (
        "kill = lambda: os.kill(os.getpid(), 9)\n"
        "given_up = os.environ.get('SMXGB_PLANS_GIVEN_UP', '0')\n"
        "print('plans given up:', given_up, flush=True)\n"
        f"if given_up == '1': {then}\n"
        f"else: link.send(Planned(True)); Path({str(counter)!r}).write_text('oom_kill 2'); kill()"
    )
    found, out, _ = job.run(work)
    assert found == code
    assert re.findall(r"plans given up: (\d)", out) == ["0", "1"]
    assert "out of memory: the kernel killed the work" in out
    # The second end is nobody's lack of memory.
    assert code == 0 or str(job.failure).startswith("PlatformError: the work was killed from outside")


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_ends_the_work_at_once_and_leaves_no_half_written_model(
    job: Job, number: signal.Signals
) -> None:
    half = job.write("model/.smxgb-model-1.ubj", "half")
    work = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); link.send(PhaseBegins('matrix'))\n"
        "print(os.getpid(), flush=True)"
    )
    with job.running(f"{work}; time.sleep(60)") as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        start = time.monotonic()
        process.send_signal(number)
        assert process.wait(10) == 128 + number
        assert time.monotonic() - start < 2
    assert not lives(pid)
    assert not half.exists()
    assert job.failure is not None
    assert job.failure.startswith(
        f"PlatformError: the job was stopped by {number.name} in phase matrix, and no model"
    )


SAVES = """
print("trains", flush=True)
while not link.has_heard(Stop):
    time.sleep(0.01)
print("told", flush=True)
"""


def test_a_stop_in_training_is_told_to_the_work_which_saves_what_it_has(job: Job) -> None:
    work = f"link.send(PhaseBegins('train')){SAVES}link.send(Succeeded('saved'))"
    with job.running(work) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        out, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert out.splitlines()[-2:] == ["told", "saved"]
    assert job.failure is None


def test_a_round_longer_than_the_grace_is_cut_off_and_a_second_stop_does_not_undo_the_first(job: Job) -> None:
    job.write("input/config/hyperparameters.json", '{"stop_timeout": "1", "max_restarts": "0"}')
    with job.running(f"link.send(PhaseBegins('train')){SAVES}time.sleep(60)") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "trains\n"
        process.terminate()
        while process.stdout.readline() != "told\n":
            pass
        process.terminate()
        assert process.wait(10) == 143
    assert str(job.failure).startswith("PlatformError: the job was stopped by SIGTERM in phase train, and no")


def test_a_second_ctrl_c_ends_the_job_at_once(job: Job) -> None:
    with job.running(f"link.send(PhaseBegins('train')){SAVES}time.sleep(60)") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        while process.stdout.readline() != "told\n":
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130


def test_a_stop_comes_too_late_for_work_that_is_done(job: Job) -> None:
    with job.running("link.send(Succeeded('done')); print('said', flush=True); time.sleep(0.3)") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert job.failure is None


WRITE = """
results = [base / "output/data/.smxgb-metrics.json", base / "model/.smxgb-xgboost-model"]
for path in results:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(path.name)
print("written", flush=True)
"""


def test_results_get_their_names_when_the_work_has_succeeded(job: Job) -> None:
    code, out, _ = job.run(WRITE + "link.send(Succeeded('done', tuple(results)))")
    assert (code, out) == (0, "written\ndone\n")
    assert [path.name for path in (job.base / "model").iterdir()] == ["xgboost-model"]
    assert [path.name for path in (job.base / "output/data").iterdir()] == ["metrics.json"]


@pytest.mark.parametrize("end", ["os._exit(1)", "fail('a')", "os.kill(os.getpid(), 9)"])
def test_results_that_were_written_before_a_failure_do_not_stay(job: Job, end: str) -> None:
    assert job.run(WRITE + end)[0] != 0
    assert not job.results


def test_results_that_were_written_before_a_stop_do_not_stay(job: Job) -> None:
    with job.running(WRITE + "time.sleep(60)") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(10) == 143
    assert not job.results


def test_results_that_can_not_get_their_names_make_the_job_a_failure(job: Job) -> None:
    job.write("model/xgboost-model/file")
    code, out, _ = job.run(WRITE + "link.send(Succeeded('done', tuple(results)))")
    assert code != 0
    assert "done" not in out
    assert job.failure is not None
    assert not list((job.base / "output/data").iterdir())


def test_a_failure_leaves_the_model_of_an_earlier_job_and_says_whose_it_is(job: Job) -> None:
    model = job.write("model/xgboost-model", "precious")
    _, _, err = job.run("fail('a')")
    assert model.read_text() == "precious"
    assert err.splitlines() == [
        "UserError: a",
        f"{model} is the model of an earlier job: this one has left none.",
    ]


def test_a_stop_while_the_supervisor_ends_changes_nothing(job: Job) -> None:
    # Python calls this after all else, its own handlers being gone.
    late = "class Late:\n def __del__(self, kill=os.kill, of=(os.getpid(), signal.SIGTERM)): kill(*of)\n"
    before = f"import os, signal, sys\n{late}sys.late = Late()\n"
    assert job.run("link.send(Succeeded('done'))", before)[0] == 0
    assert job.run("fail('a')", before)[0] == 2


def test_a_stop_before_the_work_has_said_anything_ends_it(job: Job) -> None:
    with job.running("time.sleep(60)") as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert soon(lambda: bool(children.read_text()))
        process.terminate()
        assert process.wait(10) == 143


@pytest.mark.parametrize("group", ["", ", process_group=0"])
@pytest.mark.parametrize("end", ["link.send(Succeeded('done'))", "os._exit(1)", "os.kill(os.getpid(), 11)"])
def test_nothing_that_the_work_started_outlives_it(job: Job, end: str, group: str) -> None:
    work = f"print(subprocess.Popen(['sleep', '60']{group}).pid, flush=True); {end}"
    with job.running(work) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.wait(10)
        assert not lives(pid)


def test_work_whose_supervisor_is_killed_dies_with_it(job: Job) -> None:
    with job.running("print(os.getpid(), flush=True); time.sleep(60)") as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
        assert soon(lambda: not lives(pid))


def test_orphans_are_collected_as_process_1_has_to(job: Job) -> None:
    subreaper = "import ctypes; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
    work = """
if not (child := os.fork()):
    os._exit(0) if os.fork() else time.sleep(0.1)
    Path(base, "orphan").write_text(str(os.getpid()))
    os._exit(0)
os.waitpid(child, 0)
while not Path(base, "orphan").exists() or not (text := Path(base, "orphan").read_text()):
    time.sleep(0.01)
deadline = time.monotonic() + 10
while Path("/proc", text).exists():
    assert time.monotonic() < deadline
    time.sleep(0.01)
link.send(Succeeded("collected"))
"""
    assert job.run(work, subreaper)[:2] == (0, "collected\n")


def test_work_that_lets_go_of_the_pipe_is_still_watched(job: Job) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert job.run("os.close(fd); time.sleep(1); os._exit(4)")[0] == 1
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 0.5


def test_work_that_can_not_be_started_is_a_fault_of_ours(job: Job) -> None:
    script = SUPERVISOR.replace('(sys.executable, "-c", sys.argv[1])', '("/nowhere/python",)')
    environ = os.environ | {"SAGEMAKER_BASE_DIR": str(job.base)}
    done = subprocess.run([sys.executable, "-c", script, "", "/"], env=environ, check=False, timeout=30)
    assert done.returncode == 1
    assert job.failure == (
        "AlgorithmError: the work could not be started: /nowhere/python: No such file or directory."
    )


def test_sixty_mistakes_fit_the_failure_file_and_the_log_has_them_all(job: Job) -> None:
    _, _, err = job.run("fail(*(f'setting {n} is not one of the allowed.' for n in range(60)))")
    assert job.failure is not None
    assert len(job.failure.encode()) < 1024
    assert job.failure.startswith("UserError: 60 mistakes. 1. setting 0 is")
    assert [err.count(f"setting {number} is") for number in range(60)] == [1] * 60


def test_a_long_mistake_is_cut_between_characters_of_any_alphabet(job: Job) -> None:
    _, _, err = job.run("fail('列' * 2000)")
    assert job.failure == UserError("列" * 2000).failure_text()
    assert len(job.failure.encode()) < 1024
    assert err.count("列") == 2000


def test_the_failure_file_of_an_earlier_job_is_replaced(job: Job) -> None:
    job.write("output/failure", "old")
    job.run("fail('new')")
    assert job.failure == "UserError: new"


def test_the_failure_file_of_an_earlier_job_does_not_survive_success(job: Job) -> None:
    job.write("output/failure", "old")
    assert job.run("link.send(Succeeded('done'))")[0] == 0
    assert job.failure is None


def test_a_failure_file_that_the_work_wrote_stays(job: Job) -> None:
    job.write("output/data/a")
    job.run("(base / 'output/failure').write_text('from a script'); os._exit(1)")
    assert job.failure == "from a script"


def test_an_output_folder_that_can_not_be_written_changes_neither_exit_code_nor_log(job: Job) -> None:
    job.write("output", "a file in the place of the folder")
    code, _, err = job.run("fail('a')")
    assert code == 2
    first, second = err.splitlines()
    assert first == "UserError: a"
    assert second.startswith("The failure file ")
    assert "could not be written" in second


def test_a_disk_without_room_for_the_failure_file_leaves_no_part_of_it(job: Job) -> None:
    no_room = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    code, _, err = job.run("fail('a')", no_room)
    assert code == 2
    assert "could not be written: File too large" in err
    assert list((job.base / "output").iterdir()) == []


@pytest.mark.parametrize("end", ["link.send(Succeeded('done'))", "os.kill(os.getpid(), 9)", "fail('a')"])
def test_the_scratch_folders_that_the_work_named_are_removed_and_no_others(job: Job, end: str) -> None:
    ours, other = job.write("spool/ours/part-0.arrow"), job.write("spool/other/data.csv")
    job.run(f"link.send(Scratch(base / 'spool/ours')); {end}")
    assert not ours.parent.exists()
    assert other.exists()


def test_a_failed_job_leaves_nothing_half_written(job: Job) -> None:
    whole = [job.write("model/xgboost-model"), job.write("output/data/metrics.json")]
    half = [job.write("model/.smxgb-model/a.ubj").parent, job.write("output/data/.smxgb-metrics.json")]
    job.run("fail('a')")
    assert all(path.exists() for path in whole)
    assert not any(path.exists() for path in half)


def test_everyone_may_read_the_results_and_nobody_else_may_write_them(job: Job) -> None:
    outside = job.write("input/config/hyperparameters.json")
    program = job.write("output/data/run.sh")
    model = job.write("model/xgboost-model")
    (job.base / "model" / "link").symlink_to(outside)
    program.chmod(0o700)
    for path in (outside, model):
        path.chmod(0o600)
    model.parent.chmod(0o700)
    job.run("fail('a')")
    modes = [path.stat().st_mode & 0o777 for path in (model.parent, model, program, outside)]
    assert modes == [0o755, 0o644, 0o755, 0o600]
    assert (job.base / "output" / "failure").stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_results_belong_to_the_owner_of_the_jobs_folders(job: Job) -> None:
    job.write("input/config/hyperparameters.json")
    os.chown(job.base / "input" / "config", 1234, 1235)
    model = job.write("model/xgboost-model")
    job.run("fail('a')")
    for path in (model, model.parent, job.base / "output" / "failure"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


def test_a_stop_that_comes_before_it_can_be_handled_waits(job: Job) -> None:
    # As the image starts the supervisor, which is process 1 there.
    before = (
        "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    assert job.run("time.sleep(60)", before)[0] == 143
    assert job.failure is not None
    assert job.failure.startswith("PlatformError: the job was stopped by SIGTERM")


def test_a_folder_in_the_place_of_the_failure_file_is_said(job: Job) -> None:
    job.write("output/failure/a")
    code, _, err = job.run("fail('a')")
    assert code == 2
    place = job.base / "output" / "failure"
    assert f"The failure file {place} could not be written: Is a directory." in err.splitlines()
    assert [path.name for path in place.parent.iterdir()] == ["failure"]


def test_a_link_in_the_place_of_the_failure_file_is_not_followed(job: Job) -> None:
    precious = job.write("precious", "precious")
    job.write("output/data/a")
    (job.base / "output" / ".smxgb-failure").symlink_to(precious)
    job.run("fail('a')")
    assert job.failure == "UserError: a"
    assert precious.read_text() == "precious"


def test_the_supervisor_loads_nothing_but_python() -> None:
    script = (
        "import sys; before = set(sys.modules); import smxgb.supervision.supervisor\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(loaded.split()) - set(sys.stdlib_module_names) == {"smxgb"}
