from __future__ import annotations

import socket
from threading import Event

import pytest

from smxgb.listeners import admit_only, brief, connected, is_foreign, listeners, port_of, shut

HERE = "127.0.0.1"


def test_a_socket_is_among_the_listeners_from_when_it_listens_until_it_is_shut() -> None:
    with socket.socket() as each:
        each.bind((HERE, 0))
        assert each.fileno() not in listeners()
        each.listen()
        assert each.fileno() in listeners()
        assert port_of(each.fileno()) == each.getsockname()[1]
        shut(each.fileno())
        assert each.fileno() not in listeners()
        with pytest.raises(OSError, match="Invalid argument"):
            each.accept()


def test_connections_are_counted_by_their_address() -> None:
    with socket.create_server((HERE, 0)) as listener:
        port = listener.getsockname()[1]
        assert not connected(port)
        streams = [socket.create_connection((HERE, port)) for _ in range(3)]
        assert connected(port) == {HERE: 3}
        for each in streams:
            each.close()


def test_the_loopback_and_the_addresses_of_the_job_are_let_in() -> None:
    with socket.create_server((HERE, 0)) as listener:
        admit_only(listener.fileno(), ["10.0.0.1", "10.0.0.2"])
        socket.create_connection(listener.getsockname(), timeout=5).close()
    foreign = is_foreign(["10.0.0.1"])
    assert [foreign(address) for address in ("10.0.0.1", HERE, "127.0.0.9", "10.0.0.2")] == [
        False,
        False,
        False,
        True,
    ]


def test_whoever_comes_to_a_briefly_open_port_from_elsewhere_is_noticed() -> None:
    elsewhere = _own_address()
    noticed, seen = Event(), []

    def notice(stranger: str, port: int) -> None:
        seen.append((stranger, port))
        noticed.set()

    with socket.socket() as early:
        early.bind(("0.0.0.0", 0))  # noqa: S104 - as XGBoost does
        port = early.getsockname()[1]
        with brief([], notice):
            early.listen()
            with socket.socket() as stranger:
                stranger.bind((elsewhere, 0))
                stranger.settimeout(0.2)
                reached = stranger.connect_ex((elsewhere, port)) == 0  # the kernel may drop it by now
                assert not reached or noticed.wait(10)
        assert early.fileno() not in listeners()
    assert not reached or seen[0] == (elsewhere, port)


def _own_address() -> str:
    """Return an address of this machine that is not its loopback's; nothing is sent for that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            pytest.skip("this machine has the loopback's address alone")
        address: str = probe.getsockname()[0]
        return address
