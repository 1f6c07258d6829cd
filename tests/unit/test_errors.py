from __future__ import annotations

import errno
import json

import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from smxgb.errors import (
    FAILURE_LIMIT,
    AlgorithmError,
    JobError,
    Mistakes,
    PlatformError,
    UserError,
    as_job_error,
    from_json,
)
from smxgb.supervision.control.wire import LONGEST_MESSAGE


def test_one_mistake_is_one_line_that_begins_with_its_kind() -> None:
    assert UserError("eta is -1.").lines() == ["UserError: eta is -1."]


def test_the_first_of_several_mistakes_stands_on_the_line_with_their_count() -> None:
    assert UserError("eta is -1.", "gamma is -2.", "max_depth is x.").lines() == [
        "UserError: 3 mistakes. 1. eta is -1.",
        "2. gamma is -2.",
        "3. max_depth is x.",
    ]


def test_a_mistake_is_always_one_line() -> None:
    assert UserError("the value is a\r\nb\u2028c.").lines() == ["UserError: the value is a b c."]


def test_a_file_name_that_is_no_unicode_is_spelled_out() -> None:
    assert (
        UserError("no column in bad\udcff.csv.").failure_text() == "UserError: no column in bad\\udcff.csv."
    )


@given(st.lists(st.text(max_size=400), min_size=1, max_size=80))
def test_the_failure_text_fits_and_holds_whole_mistakes(mistakes: list[str]) -> None:
    error = UserError(*mistakes)
    text = error.failure_text()
    assert len(text.encode()) <= FAILURE_LIMIT
    (first, *others), said = text.split("\n"), error.lines()
    assert said[0].startswith(first.removesuffix("..."))
    whole = [
        line for line in others if not (line.startswith("... and ") and line.endswith("more in the log."))
    ]
    assert whole == said[1 : 1 + len(whole)]


def test_the_failure_text_says_how_many_mistakes_did_not_fit() -> None:
    error = UserError(
        *(f"setting number {number} has a value that is out of its range." for number in range(60))
    )
    lines = error.failure_text().split("\n")
    assert lines[0].startswith("UserError: 60 mistakes. 1. setting number 0")
    assert lines[-1] == f"... and {60 - (len(lines) - 1)} more in the log."


@pytest.mark.parametrize("shift", range(4))
def test_a_long_text_is_cut_between_characters(shift: int) -> None:
    text = UserError("x" * shift + "日本語" * 500).failure_text()
    assert len(text.encode()) <= FAILURE_LIMIT
    assert text.endswith("...")
    assert set(text.removeprefix("UserError: " + "x" * shift).removesuffix("...")) == set("日本語")


@pytest.mark.parametrize(("error", "code"), [(AlgorithmError, 1), (UserError, 2), (PlatformError, 3)])
def test_a_failure_is_the_same_after_its_way_through_json(error: type[JobError], code: int) -> None:
    again = from_json(error("a", "b", origin="elsewhere").as_json())
    assert type(again) is error
    assert (again.exit_code, again.mistakes, again.origin) == (code, ("a", "b"), "elsewhere")
    assert from_json(error("a", exit_code=137).as_json()).exit_code == 137


@pytest.mark.parametrize("value", [{}, {"kind": "UserError", "mistakes": []}, {"failed": 1}])
def test_a_failure_that_is_not_understood_is_a_fault_of_ours(value: dict[str, object]) -> None:
    assert type(from_json(value)) is AlgorithmError


def test_a_failure_of_one_host_names_it_once() -> None:
    failure = UserError("a", "b").of_host("algo-2")
    assert failure.mistakes == ("host algo-2: a", "host algo-2: b")
    assert UserError("algo-1 is guilty", origin="everywhere").of_host("algo-2").mistakes == (
        "algo-1 is guilty",
    )


def test_other_hosts_hear_of_the_first_of_very_many_mistakes_and_how_many_there_are() -> None:
    failure = UserError(*(f"file {number} {'x' * 20_000}" for number in range(9000))).of_host("algo-2")
    assert len(json.dumps(failure.as_json())) < LONGEST_MESSAGE // 4
    again = from_json(failure.as_json())
    assert again.mistakes == failure.mistakes
    assert again.lines()[0].startswith("UserError: 9000 mistakes. 1. host algo-2: file 0 ")
    assert again.lines()[-1] == "... and 8,980 more in the log of the host that has found them."
    short = from_json(UserError(*map(str, range(30)), origin="everywhere").of_host("algo-2").as_json())
    assert short.mistakes == tuple(map(str, range(20)))
    assert short.failure_text().endswith("\n20. 19\n... and 10 more in the log.")


def test_mistakes_are_raised_together_and_each_once() -> None:
    mistakes = Mistakes()
    mistakes.add("a")
    with mistakes.collect():
        raise UserError("b", "a")
    with pytest.raises(UserError) as raised:
        mistakes.raise_any()
    assert raised.value.mistakes == ("a", "b")


def test_no_mistakes_raise_nothing() -> None:
    mistakes = Mistakes()
    with mistakes.collect():
        mistakes.raise_any()
    assert not any(mistakes)


def test_only_user_errors_are_collected() -> None:
    with pytest.raises(PlatformError), Mistakes().collect():
        raise PlatformError("a")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UserError("a"), "UserError: a"),
        (MemoryError(), "PlatformError: out of memory: "),
        (RuntimeError("std::bad_alloc"), "PlatformError: out of memory: "),
        (
            OSError(errno.ENOSPC, "No space left", "/volume/a"),
            "PlatformError: the disk is full while writing /volume/a: ",
        ),
        (
            OSError(errno.EACCES, "Permission denied", "/a"),
            "PlatformError: /a: permission denied to the user that ",
        ),
        (
            OSError(errno.EROFS, "Read-only file system", "/a"),
            "PlatformError: /a: Read-only file system: mount it so ",
        ),
        (
            OSError(errno.EFBIG, "File too large", "/a"),
            "PlatformError: /a can't grow any more: raise the limit on a file's size",
        ),
        (
            BlockingIOError(errno.EAGAIN, "again"),
            "PlatformError: no more processes or threads can be started",
        ),
        (
            RuntimeError("can't start new thread"),
            "PlatformError: no more processes or threads can be started",
        ),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "PlatformError: out of memory: "),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "/a"),
            "PlatformError: /a: No such file or directory: something beside this job has removed ",
        ),
        (
            FileExistsError(errno.EEXIST, "File exists", "/a"),
            "PlatformError: /a: File exists: something beside ",
        ),
        (
            IsADirectoryError(errno.EISDIR, "Is a directory", "/a"),
            "PlatformError: /a: Is a directory: something beside ",
        ),
        (
            NotADirectoryError(errno.ENOTDIR, "Not a directory", "/a"),
            "PlatformError: /a: Not a directory: something beside ",
        ),
        (KeyError("a\nb"), "AlgorithmError: KeyError: "),
        (AssertionError(), "AlgorithmError: AssertionError"),
    ],
)
def test_whatever_is_raised_becomes_one_of_the_three_kinds(error: BaseException, expected: str) -> None:
    assert str(as_job_error(error)).startswith(expected)


def raised(error: Exception, below: BaseException) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error from below
    return caught.value


@pytest.mark.parametrize(
    ("below", "expected"),
    [(MemoryError(), "PlatformError: out of memory: "), (UserError("a"), "UserError: a")],
)
def test_what_a_library_has_put_its_own_error_around_counts(below: Exception, expected: str) -> None:
    assert str(as_job_error(raised(RuntimeError("Worker failed to start."), below))).startswith(expected)


def test_an_error_that_is_its_own_cause_is_reported() -> None:
    error = RuntimeError("an odd failure")
    error.__cause__ = error
    assert str(as_job_error(error)) == "AlgorithmError: RuntimeError: an odd failure"


def test_the_addresses_of_native_code_are_no_part_of_a_failure() -> None:
    with pytest.raises(xgb.core.XGBoostError, match="Stack trace") as caught:
        xgb.Booster(model_file="/nowhere/model")
    text = str(as_job_error(caught.value))
    assert "Opening /nowhere/model failed: No such file or directory" in text
    assert "Stack trace" not in text
    assert "[bt]" not in text
