from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from smxgb.serving.responses import BATCH_FORMS, FORMS, MULTI_MODEL_FORMS, choose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.serving.responses import ResponseForm

SCORES = np.array([0.1, np.nan, 3], np.float32)
LISTS = np.array([[0.5, 0.25], [1, 2]], np.float32)


def written(forms: Mapping[str, ResponseForm], content_type: str, *parts: Mapping[str, Any]) -> str:
    return b"".join(forms[content_type].parts(parts)).decode()


def test_json_holds_null_for_what_is_no_number() -> None:
    text = written(FORMS, "application/json", {"score": SCORES})
    assert json.loads(text) == {
        "predictions": [{"score": np.float32(0.1).item()}, {"score": None}, {"score": 3.0}]
    }


def test_json_of_no_rows_is_whole() -> None:
    assert json.loads(written(FORMS, "application/json")) == {"predictions": []}


def test_parts_follow_each_other_without_a_gap() -> None:
    parts = [{"score": SCORES[:1]}, {"score": SCORES[2:]}]
    assert len(json.loads(written(FORMS, "application/json", *parts))["predictions"]) == 2
    assert written(FORMS, "text/csv", *parts).split("\n") == [repr(np.float32(0.1).item()), "3.0"]
    assert written(BATCH_FORMS, "text/csv", *parts).endswith("3.0\n")
    assert len(np.load(io.BytesIO(b"".join(FORMS["application/x-npy"].parts(parts))))) == 2


def test_several_outputs_stand_in_one_line() -> None:
    assert written(FORMS, "text/csv", {"score": LISTS}) == "0.5,0.25\n1.0,2.0"
    assert json.loads(written(FORMS, "application/jsonlines", {"score": LISTS}).split("\n")[0]) == {
        "score": [0.5, 0.25]
    }


def test_lists_of_selected_keys_are_quoted_in_csv() -> None:
    text = written(FORMS, "text/csv", {"label": np.array([1, 0]), "all": LISTS, "wrong": None})
    assert list(csv.reader(io.StringIO(text))) == [["1", "[0.5, 0.25]", ""], ["0", "[1.0, 2.0]", ""]]


def test_an_endpoint_of_several_models_joins_its_answers() -> None:
    assert (
        written(MULTI_MODEL_FORMS, "text/csv", {"score": SCORES[:1]}, {"score": SCORES[2:]}).count(",") == 1
    )
    assert json.loads(written(MULTI_MODEL_FORMS, "application/json", {"score": LISTS})) == [
        [0.5, 0.25],
        [1, 2],
    ]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/csv"),
        ("*/*", "text/csv"),
        ("Application/JSON", "application/json"),
        ("image/png, application/json", "application/json"),
        ("text/csv;q=0.5, application/json;q=0.9", "application/json"),
        ("application/json;q=0, */*;q=0.1", "text/csv"),
        ("application/*", "application/json"),
        ("image/png", None),
        ("text/csv;q=0", None),
    ],
)
def test_accept_lists(accept: str, content_type: str | None) -> None:
    form = choose(accept, "text/csv", FORMS)
    assert (form and form.content_type) == content_type
