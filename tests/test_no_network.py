"""The tests have no network, neither have the programs that they start; and whose data they use is said."""

import socket
import subprocess
import sys

import pytest

from lmssc.datasets.fetch import data_folder

OUTSIDE = "192.0.2.1"  # for documentation (RFC 5737): nobody is there
ATTEMPTS = [
    f"import socket; socket.create_connection(({OUTSIDE!r}, 443), 5)",
    f"import socket; socket.socket().connect_ex(({OUTSIDE!r}, 443))",
    f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'?', ({OUTSIDE!r}, 53))",
    "import socket; socket.getaddrinfo('pypi.org', 443)",
    "import socket; socket.gethostbyname('pypi.org')",
    "import urllib.request; urllib.request.urlopen('http://pypi.org', timeout=5)",
]
MESSAGE = "tests run without a network, but this one asks for '"


@pytest.mark.parametrize("attempt", ATTEMPTS)
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_test_that_reaches_out_is_told_so(attempt):
    with pytest.raises(RuntimeError, match=MESSAGE):
        exec(attempt)


def test_a_program_that_a_test_starts_cannot_reach_out_either():
    started = [subprocess.Popen([sys.executable, "-c", one], stderr=subprocess.PIPE, text=True) for one in ATTEMPTS]
    for process in started:
        assert MESSAGE in process.communicate(timeout=60)[1]


def test_this_machine_can_be_reached(tmp_path, loopback):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            socket.create_connection((host, port), 5).close()
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as calling:
        listening.bind(path)
        listening.listen()
        calling.connect(path)


def test_a_test_that_does_not_ask_for_the_data_has_none():
    assert data_folder() is None


def test_a_test_that_asks_for_the_data_has_it_or_is_skipped(paper_file):
    assert paper_file("sonar").parent == data_folder()
