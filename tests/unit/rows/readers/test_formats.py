from __future__ import annotations

from importlib import import_module

import pytest

from smxgb.job.content_types import FORMATS, ContentType


@pytest.mark.parametrize("content_type", FORMATS)
def test_the_reader_that_a_row_of_the_table_names_does_what_the_row_says(content_type: ContentType) -> None:
    known = FORMATS[content_type]
    module = import_module(known.reader)
    assert callable(module.open_channel)
    assert hasattr(module, "can_be_cut") == known.can_be_cut
