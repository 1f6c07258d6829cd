from __future__ import annotations

import subprocess
import sys
import warnings
from typing import TYPE_CHECKING

import pytest

from smxgb.log import log, log_error, log_values, notice, notices, warnings_as_lines
from smxgb.wording import readable_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator


MIB = 1024**2


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=30
    )


@pytest.fixture
def plain_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings_as_lines()
        yield


def test_log_lines_go_to_standard_output_and_errors_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log("Mode: single.")
    log_values("[0]\ttrain-rmse:1.0")
    log_error("UserError: no")
    assert capsys.readouterr() == ("Mode: single.\n[0]\ttrain-rmse:1.0\n", "UserError: no\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nUserError: forged", r"a\nUserError\x3a forged"),
        ("[0]\tvalidation-auc:1.0", r"[0]\tvalidation-auc\x3a1.0"),
        ("[0] #011validation-auc:1.0 train-rmse:-.5", r"[0] #011validation-auc\x3a1.0 train-rmse\x3a-.5"),
        ("validation-auc:nan", r"validation-auc\x3anan"),
        ("\x1b[2K\x00\r\u2028\u202e\x85", r"\x1b[2K\x00\r\u2028\u202e\x85"),
        ("größe 身長 10:30 qid:5 train:3 validation-x", "größe 身長 10:30 qid:5 train:3 validation-x"),
    ],
)
def test_what_a_line_quotes_makes_no_other_line_and_no_value(
    text: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log(text)
    log_error(text)
    assert capsys.readouterr() == (f"{shown}\n", f"{shown}\n")


def test_only_the_beginning_of_an_error_names_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    log_error("UserError: column UserError: forged")
    assert capsys.readouterr().err == "UserError: column UserError\\x3a forged\n"


def test_a_notice_is_a_line_of_its_own_and_comes_once(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("the label counts rows.", "the label counts rows.", "train is validation."):
        notice(text)
    assert capsys.readouterr().out == "Notice: the label counts rows.\nNotice: train is validation.\n"
    assert notices() == ("the label counts rows.", "train is validation.")


def test_a_line_is_out_at_once() -> None:
    assert run("import os; from smxgb.log import log; log('a'); os._exit(0)").stdout == "a\n"


def test_a_line_with_characters_that_the_log_can_not_show_is_spelled_out() -> None:
    script = (
        "import sys; from smxgb.log import log\nsys.stdout.reconfigure(encoding='ascii'); log('ä\\udcff')"
    )
    assert run(script).stdout == "\\xe4\\udcff\n"


def test_a_log_that_nobody_reads_any_more_does_not_end_the_work() -> None:
    script = "from smxgb.log import log\nfor _ in range(9): log('x' * 9999)\nraise SystemExit(7)"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(30) == 7


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (2048, "2.0 KiB"), (725 * MIB, "725 MiB"), (1500 * MIB, "1.5 GiB")],
)
def test_bytes_are_shown_with_the_digits_that_matter(count: int, text: str) -> None:
    assert readable_bytes(count) == text


@pytest.mark.usefixtures("plain_warnings")
def test_a_warning_of_xgboost_is_one_line_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    for second in ("01", "02"):
        text = f"[04:10:{second}] WARNING: /workspace/src/learner.cc:343: `booster=dart`\nis deprecated."
        warnings.warn(text, UserWarning, stacklevel=1)
    assert capsys.readouterr() == ("XGBoost: `booster=dart` is deprecated.\n", "")


@pytest.mark.usefixtures("plain_warnings")
def test_a_warning_of_another_library_is_one_line_without_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    warnings.warn("a is old", FutureWarning, stacklevel=1)
    warnings.warn("b is old", FutureWarning, stacklevel=1)
    assert capsys.readouterr().out == "Warning: a is old\nWarning: b is old\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_output_leads_nowhere_and_no_file_gets_its_number(closed: str) -> None:
    script = (
        "import os\n"
        "from smxgb.log import log, log_error, open_streams\n"
        "open_streams(); log('a'); log_error('b')\n"
        "os._exit(7 if os.open(os.devnull, os.O_RDONLY) > 2 else 8)"
    )
    shell = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, script]
    assert subprocess.run(shell, check=False, timeout=30).returncode == 7
