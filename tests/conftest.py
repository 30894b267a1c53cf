"""Fixtures and helpers that several test files use."""

import socket

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(scope="session")
def digits():
    """The digits in views."""
    from lmssc.datasets import load_digits_views

    return load_digits_views()


@pytest.fixture
def brief_report(monkeypatch):
    """A report of one word from `lmssc classify`: the real one has tests of its own, and fits many times."""
    monkeypatch.setattr("lmssc.report.write_report", lambda path, *args, **kwargs: path.write_text("report"))


@pytest.fixture(scope="module")
def uncalibrated():
    """No calibration by default, which is most of a small fit, in the tests and fixtures of a file."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        leave_calibration_out(monkeypatch)
        yield


@pytest.fixture
def quick_fits(monkeypatch):
    """No calibration by default, and suspect labels by one small round: most of the time of `lmssc classify`.

    For tests of what is read and written.
    """
    leave_calibration_out(monkeypatch)
    monkeypatch.setattr("lmssc.core.label_noise.MAX_LABELS_TWICE", 0)
    monkeypatch.setattr("lmssc.core.held_out_folds.N_FOLDS", 2)


def leave_calibration_out(monkeypatch):
    from lmssc import LMSSC

    monkeypatch.setitem(LMSSC.__init__.__kwdefaults__, "calibrate", False)


@pytest.fixture(scope="session")
def loopback():
    """Skip where not even this machine can be reached, as in a bare network namespace."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        try:
            socket.create_connection(server.getsockname(), 5).close()
        except OSError as error:
            pytest.skip(f"needs the loopback interface (ip link set lo up): {error}")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Chromium, offline."""
    from browsing import start_browser

    driver = start_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def tiny_figures(tmp_path_factory):
    """Folder of all figures of a few made-up samples, and the files written to it."""
    from made_up import draw_tiny_figures

    folder = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as monkeypatch:
        return folder, draw_tiny_figures(monkeypatch, folder)
