from __future__ import annotations

import pytest

from smxgb.errors import UserError
from smxgb.rows.empty_workers import check_empty_workers
from smxgb.settings import parse


def test_weights_that_would_count_groups_are_refused() -> None:
    settings = parse({"num_round": 1, "group_column": "q"}).settings
    with pytest.raises(UserError, match="group_column then goes with an objective that ranks only"):
        check_empty_workers(["a"], settings)
    check_empty_workers([], settings)
