from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smxgb.supervision.publishing import finished, publish, remove_unfinished, unfinished

if TYPE_CHECKING:
    from pathlib import Path


def test_published_results_have_their_names_and_are_listed(tmp_path: Path) -> None:
    places = [tmp_path / "metrics.json", tmp_path / "xgboost-model"]
    for place in places:
        unfinished(place).write_text(place.name)
    assert finished(tmp_path) == []
    publish([unfinished(place) for place in places])
    assert finished(tmp_path) == places
    assert [place.read_text() for place in places] == ["metrics.json", "xgboost-model"]


def test_if_one_result_can_not_be_published_none_is(tmp_path: Path) -> None:
    place = tmp_path / "metrics.json"
    unfinished(place).touch()
    with pytest.raises(FileNotFoundError):
        publish([unfinished(place), unfinished(tmp_path / "xgboost-model")])
    assert list(tmp_path.iterdir()) == []


def test_only_what_was_not_published_is_removed(tmp_path: Path) -> None:
    model = tmp_path / "xgboost-model"
    model.touch()
    unfinished(tmp_path / "metrics.json").touch()
    unfinished(tmp_path / "folder").mkdir()
    unfinished(tmp_path / "link").symlink_to(tmp_path)
    remove_unfinished(tmp_path, tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == [model]


def test_a_folder_that_is_not_there_has_no_results(tmp_path: Path) -> None:
    assert finished(tmp_path / "nowhere") == []
