from __future__ import annotations

import socket
from threading import Thread

import pytest

from smxgb.environment import Hosts
from smxgb.limits import PORTS
from smxgb.supervision.control.wire import NotReady, Wire, digests, make_key, own_address, ports, resolve
from smxgb.supervision.messages import Beat, Hello, PhaseBegins

KEY = b"key"


def test_the_key_depends_on_job_hosts_and_secret() -> None:
    hosts = Hosts("a", ("a", "b"))
    key = make_key("job", hosts, "secret")
    assert key == make_key("job", Hosts("b", ("a", "b")), "secret")
    others = [
        make_key(None, hosts, "secret"),
        make_key("job", hosts, None),
        make_key("job", Hosts("a", ("a",)), "secret"),
    ]
    assert len({key, *others}) == 4


def test_digests_say_which_values_differ_and_to_nobody_without_the_key_what_they_are() -> None:
    ours, theirs = (digests(b"key", {"eta": eta, "num_round": "1"}) for eta in ("0.1", "0.2"))
    assert ours["num_round"] == theirs["num_round"]
    assert ours["eta"] != theirs["eta"]
    assert ours["eta"] != digests(b"another", {"eta": "0.1"})["eta"]


@pytest.mark.parametrize("port", [7890, 1024, 65_535])
def test_the_spare_port_is_beside_the_control_channels(port: int) -> None:
    first, spare = ports(port)
    assert first == port
    assert abs(spare - port) == 1
    assert spare in PORTS


def test_a_name_that_does_not_resolve_may_do_so_later() -> None:
    with pytest.raises(NotReady, match="does not resolve"):
        resolve("algo-1.invalid")


def test_a_name_of_the_loopback_device_is_no_address_for_others() -> None:
    with pytest.raises(NotReady, match="other hosts can't reach"):
        own_address(Hosts("localhost", ("localhost", "b"), "no-such-interface"))
    assert own_address(Hosts("127.0.0.2", ("127.0.0.1", "127.0.0.2"))) == "127.0.0.2"


def connected(key: bytes = KEY) -> tuple[Wire, Wire]:
    """Return the two ends of a connection whose other end has `key`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted: list[Wire] = []
        other = Thread(target=lambda: accepted.append(Wire.accept(listener.accept()[0], KEY)))
        other.start()
        wire = Wire.connect("127.0.0.1", listener.getsockname()[1], key)
        other.join()
    return wire, accepted[0]


def test_messages_arrive_in_their_order_until_the_connection_closes() -> None:
    ours, theirs = connected()
    ours.send(Hello("algo-2", {}))
    ours.send(PhaseBegins("load"))
    ours.close()
    messages, is_open = theirs.receive(5)
    while is_open:
        more, is_open = theirs.receive(5)
        messages += more
    assert messages == [Hello("algo-2", {}), PhaseBegins("load")]
    theirs.close()


def test_without_a_message_the_connection_is_open() -> None:
    ours, theirs = connected()
    assert ours.receive() == ([], True)
    theirs.close()
    assert ours.receive(5) == ([], False)
    ours.close()


def test_a_message_over_a_broken_connection_is_dropped() -> None:
    ours, theirs = connected()
    theirs.close()
    ours.send(Beat())
    assert ours.receive(5) == ([], False)
    ours.close()
    ours.send(Beat())
    assert ours._connection.closed


def test_what_is_not_json_ends_the_connection_and_an_unknown_message_does_not() -> None:
    ours, theirs = connected()
    for line in (b'["NoSuchKind", {}]', b'["Beat", {}]'):
        ours._connection.send_bytes(line)
    assert theirs.receive(5) == ([Beat()], True)
    ours._connection.send_bytes(b"\x80pickled")
    assert theirs.receive(5) == ([], False)
    ours.close()
    theirs.close()
