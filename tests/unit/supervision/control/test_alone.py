from __future__ import annotations

from smxgb.environment import Hosts
from smxgb.errors import UserError
from smxgb.limits import Limits
from smxgb.supervision.control import Alone, join_hosts
from smxgb.supervision.messages import Abort, Arrived, Lead, Leave, PhaseBegins, Rendezvous


def test_one_host_alone_opens_no_channel() -> None:
    assert type(join_hosts(Hosts("a", ("a",)), None, {}, Limits())) is Alone


def test_the_end_of_the_work_is_the_verdict() -> None:
    alone = Alone(Limits())
    alone.done()
    assert alone.hear() == [Leave()]
    error = UserError("a is wrong.")
    alone.fail(error)
    assert alone.hear() == [Abort(error)]
    assert alone.hear() == []


def test_the_work_hears_at_once_that_it_may_begin_and_then_where_its_own_processes_meet() -> None:
    alone = Alone(Limits())
    meeting = Rendezvous({"scheduler": "tls://127.0.0.1:8786"}, ("127.0.0.1",))
    for message in (PhaseBegins("load"), Arrived({"workers": 2}), meeting):
        alone.tell(message)
    assert alone.hear() == [Lead("127.0.0.1", ("127.0.0.1",)), meeting]


def test_the_work_of_one_host_counts_as_frozen_too() -> None:
    assert join_hosts(Hosts("a", ("a",)), None, {}, Limits(silence_timeout=7)).silence == 7
