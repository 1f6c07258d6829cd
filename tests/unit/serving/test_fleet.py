"""Several models: loaded, used, listed, unloaded; let go of where memory is short."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb

from smxgb.serving.endpoint import Endpoint
from smxgb.serving.fleet import LOADED, RESERVE, Fleet
from smxgb.serving.service import Request

if TYPE_CHECKING:
    from pathlib import Path

    from smxgb.serving.service import Response

ROWS = np.random.default_rng(3).normal(size=(100, 2)).astype(np.float32)


def endpoint(folder: Path) -> Endpoint:
    return Endpoint(8080, folder, multi_model=True)


def write(folder: Path, level: float) -> Path:
    folder.mkdir()
    labels = ROWS[:, 0] + level
    (folder / "xgboost-model").write_bytes(
        xgb.train({"max_depth": 2}, xgb.DMatrix(ROWS, labels), 3).save_raw()
    )
    return folder


def load(fleet: Fleet, name: str, folder: Path) -> Response:
    return fleet.load(json.dumps({"model_name": name, "url": str(folder)}).encode())


def invoke(fleet: Fleet, name: str) -> Response:
    body = b"1,2\n3,4\n"
    return fleet.service(name).answer(Request("text/csv", "", body, len(body)))


def said(response: Response) -> str:
    assert isinstance(response.body, bytes)
    return response.body.decode()


def test_a_model_is_loaded_used_and_unloaded(tmp_path: Path) -> None:
    fleet = Fleet(endpoint(tmp_path), None)
    folder = write(tmp_path / "a", 0)
    assert (load(fleet, "a", folder).status, said(load(fleet, "b", folder))) == (
        200,
        '{"status": "Workers scaled"}',
    )
    again = load(fleet, "a", folder)
    assert (again.status, "Model a is already registered." in said(again)) == (409, True)
    answer = invoke(fleet, "a")
    booster = xgb.Booster(model_file=bytearray((folder / "xgboost-model").read_bytes()))
    expected = booster.predict(xgb.DMatrix(np.array([[1, 2], [3, 4]])))
    assert np.array_equal(np.array(said(answer).split(","), np.float32), expected)
    assert said(fleet.unload("a")) == '{"status": "Model \\"a\\" unregistered"}'
    for gone in (fleet.unload("a"), invoke(fleet, "a"), fleet.described("a")):
        assert (gone.status, "Model not found: a" in said(gone)) == (404, True)


def test_models_are_listed_by_pages(tmp_path: Path) -> None:
    fleet = Fleet(endpoint(tmp_path), None)
    folder = write(tmp_path / "a", 0)
    for name in "cab":
        load(fleet, name, folder)
    first = json.loads(said(fleet.listed("limit=2")))
    second = json.loads(said(fleet.listed(f"limit=2&next_page_token={first['nextPageToken']}")))
    assert [each["modelName"] for each in first["models"] + second["models"]] == ["a", "b", "c"]
    assert "nextPageToken" not in second
    assert json.loads(said(fleet.described("c"))) == {"modelName": "c", "modelUrl": str(folder)}


def test_where_memory_is_short_the_least_recently_used_model_makes_room_and_comes_back(
    tmp_path: Path,
) -> None:
    folders = {name: write(tmp_path / name, level) for level, name in enumerate("abc")}
    size = max((folder / "xgboost-model").stat().st_size for folder in folders.values())
    fleet = Fleet(endpoint(tmp_path), None, lambda: free(fleet))

    def free(fleet: Fleet) -> int:
        loaded = sum(each.models is not None for each in fleet._models.values())
        return RESERVE + LOADED * size * (2 - loaded)

    for name, folder in folders.items():
        assert load(fleet, name, folder).status == 200
    assert [name for name, each in fleet._models.items() if each.models] == ["b", "c"]
    answers = {name: said(invoke(fleet, name)) for name in "abcabc"}
    assert len(set(answers.values())) == 3
    assert sum(each.models is not None for each in fleet._models.values()) == 2


def test_a_model_that_fits_in_no_way_is_refused(tmp_path: Path) -> None:
    fleet = Fleet(endpoint(tmp_path), None, lambda: 0)
    assert load(fleet, "a", write(tmp_path / "a", 0)).status == 507
    assert invoke(fleet, "a").status == 404


@pytest.mark.parametrize("body", [b"", b"[]", b'{"model_name": "a"}', b"\xff"])
def test_a_request_that_names_no_model_is_refused(tmp_path: Path, body: bytes) -> None:
    assert Fleet(endpoint(tmp_path), None).load(body).status == 400


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    fleet = Fleet(endpoint(tmp_path), None)
    assert load(fleet, "a", tmp_path / "nowhere").status == 400
    assert fleet.described("a").status == 404
