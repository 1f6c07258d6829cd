from __future__ import annotations

from smxgb.environment import Hosts
from smxgb.errors import UserError
from smxgb.supervision.control import Alone, join_hosts
from smxgb.supervision.messages import Abort, Arrived, Leave, PhaseBegins, Rendezvous


def test_one_host_alone_opens_no_channel() -> None:
    assert type(join_hosts(Hosts("a", ("a",)), None, {})) is Alone


def test_the_end_of_the_work_is_the_verdict() -> None:
    alone = Alone()
    alone.done()
    assert alone.hear() == [Leave()]
    error = UserError("a is wrong.")
    alone.fail(error)
    assert alone.hear() == [Abort(error)]
    assert alone.hear() == []


def test_the_work_hears_where_its_own_processes_meet_and_nothing_else() -> None:
    alone = Alone()
    meeting = Rendezvous({"scheduler": "tcp://127.0.0.1:8786"})
    for message in (PhaseBegins("load"), Arrived({"workers": 2}), meeting):
        alone.tell(message)
    assert alone.hear() == [meeting]
