"""The studio in a real browser: labelled by keys alone, undone, by two people, light and dark, on a phone."""

import threading
import time
from urllib.parse import urlsplit

import pytest
from sklearn.datasets import load_digits

from browsing import brightness, complaints, needs_browser, requests, set_screen, start_browser
from lmssc.cli.demo_files import grey_png
from lmssc.io.files_to_label import read_files_to_label
from lmssc.io.options import Options
from lmssc.studio.server import StudioOptions, listen, open_studio, serve
from small_files import table_text

needs_browser()
pytest.importorskip("uvicorn")

from selenium.webdriver import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

N = 120
HOSTILE = "<img src=x onerror=document.title='hacked'>"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Digits as pictures, with a text each; one has HTML for its id."""
    folder = tmp_path_factory.mktemp("digits")
    images, target = load_digits(return_X_y=True)
    (folder / "img").mkdir()
    ids = [HOSTILE, *(f"digit-{i:03d}" for i in range(1, N))]
    for key, image in zip(ids, images, strict=False):
        if key != HOSTILE:
            (folder / "img" / f"{key}.png").write_bytes(grey_png(255 - 15 * image.reshape(8, 8)))
    header = ["id", *(f"p{j}" for j in range(64)), "body"]
    rows = [[key, *image, f"{HOSTILE} note {i}"] for i, (key, image) in enumerate(zip(ids, images, strict=False))]
    (folder / "digits.csv").write_text(table_text(header, rows))
    return folder, dict(zip(ids, map(str, target), strict=False))


@pytest.fixture(scope="module")
def browser(tmp_path_factory, loopback):
    driver = start_browser(tmp_path_factory.mktemp("profile"), offline=False)
    yield driver
    driver.quit()


@pytest.fixture
def studio(files, tmp_path, request, browser):
    """A studio that is served, without its background: `settle` fits."""
    folder, truth = files
    data = read_files_to_label([str(folder / "digits.csv")], [], Options(drop=["body"]))
    with listen("127.0.0.1", 0) as listening:
        options = StudioOptions(
            out=tmp_path / "out",
            shows=[f"image={folder}/img/{{id}}.png", "text=body"],
            port=listening.getsockname()[1],
            **getattr(request, "param", {}),
        )
        made = open_studio(data, options, background=False)
        made.truth = truth
        threading.Thread(target=serve, args=(made, listening), daemon=True).start()
        yield made
        for window in browser.window_handles[1:]:
            browser.switch_to.window(window)
            browser.close()
        browser.switch_to.window(browser.window_handles[0])
        browser.get("about:blank")
        made.close()


def load(browser, studio, width=1200, scheme="light"):
    set_screen(browser, width, scheme)
    browser.get(studio.access.address)
    wait(browser, "return document.body.dataset.ready === 'yes'")


def wait(browser, script):
    WebDriverWait(browser, 20, poll_frequency=0.02).until(lambda driver: driver.execute_script(script))


def text(browser, name):
    return browser.find_element(By.ID, name).text


def press(browser, *keys):
    ActionChains(browser, duration=0).send_keys(*keys).perform()


def pressed(browser, *keys):
    """Press keys, and wait until the answer is taken and the next sample is there."""
    browser.execute_script("document.body.dataset.seen = document.getElementById('said').textContent")
    press(browser, *keys)
    wait(
        browser,
        "return !document.body.classList.contains('busy') && "
        "document.getElementById('said').textContent !== document.body.dataset.seen",
    )


def class_keys(browser):
    """Keys by class name, read at once: the page draws the buttons again when another annotator names a class."""
    return dict(
        browser.execute_script(
            "return [...document.querySelectorAll('#classes button')].map(one => "
            "[one.querySelector('span').textContent, one.querySelector('kbd').textContent])"
        )
    )


def give(browser, studio, known):
    """Label the sample in front by keys alone."""
    label = studio.truth[text(browser, "sample-title")]
    if label in known:
        pressed(browser, label)  # the key of a digit is that digit
    else:
        press(browser, "+")
        pressed(browser, label, Keys.ENTER)
        known.append(label)


def test_labelled_by_keys_alone(browser, studio):
    load(browser, studio)
    assert browser.switch_to.active_element.get_attribute("id") == "new-name"
    known = []
    for _ in range(24):
        give(browser, studio, known)
    labels = studio.session.labels()
    assert len(labels) == 24
    assert labels == {key: studio.truth[key] for key in labels}
    assert list(class_keys(browser).items()) == [(label, label) for label in known]
    studio.session.engine.settle()
    shares, names = studio.session.engine.predictions(range(N))
    free = [row for row, key in enumerate(studio.session.ids) if key not in labels]
    right = [names[shares[row].argmax()] == studio.truth[studio.session.ids[row]] for row in free]
    assert sum(right) > 0.93 * len(free), sum(right)  # 24 labels at random: 0.91 in the mean of six draws, 48: 0.96
    wait(browser, "return document.getElementById('summary').textContent.includes('model of 24 labels')")
    assert "%" in text(browser, "guesses")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#because li")) == 3
    wait(browser, "return [...document.querySelectorAll('#because img')].every(one => one.naturalWidth === 8)")
    assert "of the vote" in text(browser, "because")
    wait(browser, "return document.getElementById('facts').textContent.includes('expected accuracy')")
    assert complaints(browser) == []


def test_a_wrong_label_is_undone_and_the_sample_comes_back(browser, studio):
    load(browser, studio)
    known = []
    for _ in range(5):
        give(browser, studio, known)
    first, before = text(browser, "sample-title"), studio.session.engine._live.probabilities.copy()
    pressed(browser, known[0])
    assert text(browser, "sample-title") != first
    pressed(browser, "u")
    assert text(browser, "sample-title") == first
    assert "Undone" in browser.find_element(By.ID, "said").get_attribute("textContent")
    assert (studio.session.engine._live.probabilities == before).all()
    pressed(browser, "s")
    pressed(browser, "n")
    kinds = [answer.kind for answer in studio.session.store.standing()]
    assert kinds == ["label"] * 5 + ["skip", "none"]
    press(browser, "?")
    assert browser.find_element(By.ID, "help").is_displayed()
    press(browser, known[0])  # nothing happens behind the help
    press(browser, Keys.ESCAPE)
    assert not browser.find_element(By.ID, "help").is_displayed()
    assert len(studio.session.store.standing()) == 7
    # A class that differs in case only is asked about.
    press(browser, "+")
    press(browser, "Seven", Keys.ENTER)
    wait(browser, "return document.getElementById('classes').textContent.includes('Seven')")
    wait(browser, "return !document.body.classList.contains('busy')")
    press(browser, "+")
    press(browser, "seven", Keys.ENTER)
    wait(browser, "return document.getElementById('new-hint').textContent.includes('Seven')")
    assert "seven" not in studio.session.labels().values()
    assert complaints(browser) == []


def test_ids_labels_and_texts_are_text(browser, studio):
    studio.session.label(HOSTILE, HOSTILE, "me")
    studio.session.label("digit-005", "<script>document.title='hacked'</script>", "me")
    load(browser, studio)
    browser.execute_async_script(
        "fetch('/api/next?id=' + encodeURIComponent(arguments[0]), "
        "{headers: {Authorization: 'Bearer ' + arguments[1]}}).then(() => arguments[2]())",
        HOSTILE,
        studio.access.token,
    )
    browser.refresh()
    wait(browser, "return document.body.dataset.ready === 'yes'")
    assert HOSTILE in browser.find_element(By.ID, "classes").text
    assert HOSTILE in browser.find_element(By.ID, "content").text
    time.sleep(0.2)
    assert browser.title == "lmssc label"
    assert browser.execute_script("return document.querySelectorAll('main script, [onerror]').length") == 0
    assert complaints(browser) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 900, 1400])
def test_no_errors_no_other_requests_and_no_scrolling_sideways(browser, studio, width, scheme):
    for key in ("digit-001", "digit-002", "digit-011", "digit-012"):
        studio.session.label(key, studio.truth[key], "me")
    requests(browser)
    load(browser, studio, width, scheme)
    assert complaints(browser) == []
    asked = [urlsplit(url).netloc for url in requests(browser) if url.startswith("http")]
    assert set(asked) == {f"127.0.0.1:{studio.access.port}"}
    assert (
        browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        == 0
    )
    ground, ink = brightness(browser, "backgroundColor"), brightness(browser, "color")
    assert (ground < 0.2 and ink > 0.8) if scheme == "dark" else (ground > 0.95 and ink < 0.2)
    nameless = browser.execute_script(
        "return [...document.querySelectorAll('button, input, select, canvas, summary, a[href]')].filter(one => "
        "!(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length)).map(one => one.outerHTML)"
    )
    assert [one for one in nameless if "hidden" not in one] == []
    if width == 390:
        small = "return [...document.querySelectorAll('#classes button, .actions button')].map(one => one.offsetHeight)"
        assert min(browser.execute_script(small)) >= 40


@pytest.mark.parametrize("studio", [{"annotators": ["ann", "bob"]}], indirect=True)
def test_two_browsers_at_once_lose_no_answer(browser, studio):
    windows = {}
    for name in ("ann", "bob"):
        if windows:
            browser.switch_to.new_window("window")
        windows[name] = browser.current_window_handle
        browser.get(studio.access.address + ("&annotator=bob" if name == "bob" else ""))
        if name == "ann":  # without a name in the address the page asks who it is
            wait(browser, "return document.querySelector('#who-buttons button') !== null")
            browser.find_element(By.CSS_SELECTOR, "#who-buttons button").click()
        wait(browser, "return document.body.dataset.ready === 'yes'")
        assert browser.execute_script("return document.getElementById('who').value") == name
    said = {"ann": {}, "bob": {}}
    for turn in range(40):
        name = ("ann", "bob")[turn % 2]
        browser.switch_to.window(windows[name])
        sample = text(browser, "sample-title")
        label = studio.truth[sample] if turn % 7 else "odd"
        keys = class_keys(browser)
        if label in keys:
            pressed(browser, keys[label])
        else:
            browser.execute_script("document.activeElement.blur()")  # the choice of the annotator
            press(browser, "+")
            pressed(browser, label, Keys.ENTER)
        said[name][sample] = label
    stored = {name: {} for name in said}
    for answer in studio.session.store.standing():
        stored[answer.annotator][answer.sample] = answer.label
    assert stored == said
    differ = {key for key in said["ann"] if key in said["bob"] and said["ann"][key] != said["bob"][key]}
    assert {one.sample for one in studio.session.disagreements()} == differ
    assert complaints(browser) == []


def test_the_map_is_live_and_leads_to_samples(browser, studio):
    for key in ("digit-001", "digit-002", "digit-011", "digit-012"):
        studio.session.label(key, studio.truth[key], "me")
    studio.session.engine.settle()
    load(browser, studio)
    wait(browser, "return document.getElementById('map').width > 100")
    canvas = browser.find_element(By.ID, "map")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", canvas)
    first = text(browser, "sample-title")
    canvas.send_keys("+")
    canvas.send_keys(Keys.ENTER)
    wait(browser, "return !document.body.classList.contains('busy')")
    chosen = text(browser, "sample-title")
    assert chosen in studio.session.rows
    canvas.send_keys(Keys.ARROW_RIGHT)
    wait(browser, f"return document.getElementById('sample-title').textContent !== {chosen!r}")
    assert len(studio.session.store.standing()) == 4  # keys on the map give no labels
    assert first in studio.session.rows
    drawn = "const c = arguments[0], d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
    assert browser.execute_script(drawn + "return d.some((value) => value > 0)", canvas)
    assert complaints(browser) == []


def test_a_sample_is_found_by_its_id_and_can_be_corrected(browser, studio):
    load(browser, studio)
    pressed(browser, "x", Keys.ENTER)  # the first label, on whatever is shown
    browser.find_element(By.ID, "find-id").click()
    pressed(browser, "digit-010", Keys.ENTER)
    assert text(browser, "sample-title") == "digit-010"
    assert text(browser, "why-asked") == "Asked because you chose it"
    pressed(browser, "x")
    assert studio.session.labels()["digit-010"] == "x"
    browser.find_element(By.ID, "find-id").click()
    press(browser, "nobody", Keys.ENTER)
    wait(browser, "return document.getElementById('alarm').textContent === \"there is no sample 'nobody'\"")
    assert len(complaints(browser)) == 1  # the browser logs the request that was refused
