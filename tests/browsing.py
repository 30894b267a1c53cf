"""Chromium without a network, for the tests of pages."""

import json
import shutil

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip


def needs_browser():
    """Skip the module that calls this where there is no browser."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)", allow_module_level=True)
    pytest.importorskip("selenium.webdriver")


def start_browser(profile, *, offline=True):
    """A driver whose browser keeps its logs and is offline, or reaches this machine alone."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.execute_cdp_cmd("Network.enable", {})
    if not offline:
        return driver
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    return driver


def show(browser, page, width, scheme="light", media="screen"):
    """Load the page as a screen of that width, or paper, shows it."""
    set_screen(browser, width, scheme, media)
    browser.get(page.as_uri())


def set_screen(browser, width, scheme="light", media="screen"):
    """Look at the page as a screen of that width, or paper, shows it."""
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def brightness(browser, style):
    """How bright a colour of the page is, from 0 to 1."""
    colour = browser.execute_script(f"return getComputedStyle(document.body).{style}")
    return sum(float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")) / (3 * 255)


def requests(browser):
    """Addresses that were asked for since this was called last."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def count_unreachable_boxes(browser):
    """Number of boxes that scroll sideways but cannot be reached with the keyboard."""
    return browser.execute_script(
        "return [...document.querySelectorAll('main *')].filter(e => !e.closest('svg') && e.scrollWidth > e.clientWidth"
        " && getComputedStyle(e).overflowX === 'auto' && e.tabIndex < 0).length"
    )


def check_link(browser, link):
    """Follow a link within the page: its target must be visible."""
    browser.execute_script("scrollTo(0, 0); document.querySelector(`a[href='${arguments[0]}']`).click()", link)
    top = browser.execute_script("return document.querySelector(arguments[0])?.getBoundingClientRect().top", link)
    assert top is not None, link
    assert top < 800, link


def complaints(browser):
    """What the console says of the page; Chromium's own new tab complains of a slow network where there is none."""
    return [entry for entry in browser.get_log("browser") if not entry["message"].startswith("chrome://")]
