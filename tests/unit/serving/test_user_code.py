"""Users' inference code: which of its functions are called with what, and what they may return."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - a fixture has it
from textwrap import dedent
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb

from smxgb.errors import UserError
from smxgb.serving.endpoint import Endpoint
from smxgb.serving.service import Request
from smxgb.serving.user_code import UserCode, load_user_code

if TYPE_CHECKING:
    from smxgb.serving.service import Response

ROWS = np.random.default_rng(4).normal(size=(100, 2)).astype(np.float32)
BOOSTER = xgb.train({}, xgb.DMatrix(ROWS, ROWS[:, 0]), 3)
MODEL_FN = """
import pickle
import xgboost as xgb

def model_fn(model_dir):
    with open(f"{model_dir}/mine.pkl", "rb") as stream:
        return pickle.load(stream)
"""


def user_code(folder: Path, script: str, **settings: str) -> UserCode:
    code = folder / "code"
    code.mkdir(exist_ok=True)
    (folder / "mine.pkl").write_bytes(_pickled())
    (folder / "xgboost-model").write_bytes(BOOSTER.save_raw("ubj"))
    (code / "inference.py").write_text(dedent(script))
    return load_user_code(Endpoint(8080, folder, program="inference.py", **settings), {})  # type: ignore[arg-type]


def _pickled() -> bytes:
    import pickle  # noqa: PLC0415

    return pickle.dumps(BOOSTER)


def ask(
    code: UserCode, body: bytes = b"1,2\n3,4\n", content_type: str = "text/csv", accept: str = ""
) -> Response:
    return code.answer(Request(content_type, accept, body, len(body)))


def expected() -> list[float]:
    found: list[float] = BOOSTER.predict(xgb.DMatrix(np.array([[1, 2], [3, 4]]))).tolist()
    return found


def test_a_script_with_model_fn_alone_predicts_as_the_container_does(tmp_path: Path) -> None:
    code = user_code(tmp_path, MODEL_FN)
    assert ask(code).body == "\n".join(map(repr, expected())).encode()
    answer = ask(code, b"[[1, 2], [3, 4]]", "application/json", "application/json")
    assert isinstance(answer.body, bytes)
    assert [each["score"] for each in json.loads(answer.body)["predictions"]] == expected()


def test_every_function_is_called(tmp_path: Path) -> None:
    script = MODEL_FN + dedent("""
        def input_fn(body, content_type):
            return [content_type, body]

        def predict_fn(data, model):
            return data + [type(model).__name__]

        def output_fn(prediction, accept):
            return "|".join([*prediction, accept]), "text/plain"
    """)
    answer = ask(user_code(tmp_path, script), b"x", "text/csv; charset=utf-8", "application/json")
    assert (answer.status, answer.body, answer.content_type) == (
        200,
        b"text/csv|x|Booster|application/json",
        "text/plain",
    )


def test_transform_fn_does_all(tmp_path: Path) -> None:
    script = (
        MODEL_FN + "def transform_fn(model, body, content_type, accept):\n    return body.upper(), 'text/x'\n"
    )
    answer = ask(user_code(tmp_path, script), b"abc", "text/plain")
    assert (answer.body, answer.content_type) == (b"ABC", "text/x")


def test_a_response_as_flask_has_them_is_passed_on(tmp_path: Path) -> None:
    script = MODEL_FN + dedent("""
        class Response:
            status_code = 201
            content_type = "text/plain"

            def get_data(self):
                return b"made"

        def transform_fn(model, body, content_type, accept):
            return Response()
    """)
    answer = ask(user_code(tmp_path, script))
    assert (answer.status, answer.body, answer.content_type) == (201, b"made", "text/plain")


def test_transform_fn_beside_the_others_is_refused(tmp_path: Path) -> None:
    script = MODEL_FN + "def transform_fn(m, b, c, a): pass\ndef predict_fn(d, m): pass\n"
    with pytest.raises(UserError, match=r"inference.py has transform_fn and predict_fn"):
        user_code(tmp_path, script)


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"SAGEMAKER_PROGRAM=inference.py: .* holds no such file"):
        load_user_code(Endpoint(8080, tmp_path, program="inference.py"), {})


@pytest.mark.parametrize(
    ("content_type", "accept", "status"),
    [("image/png", "", 415), ("text/csv", "image/png", 406)],
)
def test_what_the_defaults_do_not_know_is_refused(
    tmp_path: Path, content_type: str, accept: str, status: int
) -> None:
    assert ask(user_code(tmp_path, MODEL_FN), content_type=content_type, accept=accept).status == status


def test_an_exception_of_the_script_is_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = MODEL_FN + "def input_fn(body, content_type):\n    raise ValueError('no good')\n"
    answer = ask(user_code(tmp_path, script))
    assert (answer.status, answer.body) == (500, b"ValueError: no good")
    assert "A request failed." in capsys.readouterr().err


def test_requirements_that_cannot_be_installed_are_named(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "requirements.txt").write_text("./not-there\n")
    with pytest.raises(Exception, match=r"requirements.txt can't be installed"):
        user_code(tmp_path, MODEL_FN)
