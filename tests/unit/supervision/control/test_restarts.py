from __future__ import annotations

from smxgb.errors import PlatformError
from smxgb.supervision.control.restarts import Restarts

KILLED = PlatformError("the work was killed from outside", may_pass=True)
OUT_OF_MEMORY = PlatformError("out of memory", may_pass=True, wants_memory=True)


def test_a_round_that_memory_did_not_suffice_for_is_tried_again_with_less_need_of_it() -> None:
    for second, is_tried in ((KILLED, False), (OUT_OF_MEMORY, True)):
        restarts = Restarts(9)
        for error in (KILLED, second):
            restarts.round = 3
            restart = restarts.restart(error)
        assert (restart is not None) is is_tried
