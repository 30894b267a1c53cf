"""The report of a model in a real browser: no errors, nothing fetched, and the map under mouse, finger and keyboard."""

import re

import numpy as np
import pytest
from PIL import Image

from browsing import brightness, check_link, complaints, count_unreachable_boxes, needs_browser, requests, show
from lmssc import LMSSC
from lmssc.datasets import make_multiview
from lmssc.report import write_report

needs_browser()

from selenium.webdriver import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

N = 90
IDS = ["<script>document.title='hacked'</script>", *(f"sample {i}" for i in range(1, N))]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    data = make_multiview(N, labelled=0.3, random_state=0)
    y = np.where(data.y >= 0, np.array(["ant", "bee", "</script>"], dtype=object)[np.maximum(data.y, 0)], None)
    views = {"image": data.views[0], "a long name of a view " * 4: data.views[1]}
    path = tmp_path_factory.mktemp("report") / "report.html"
    more = {"title": "Made up", "command": "lmssc " + "x" * 300}
    clf = LMSSC(max_iter=3).fit(views, y)
    photo = path.parent / "a.png"
    Image.new("L", (8, 8), 200).save(photo)
    write_report(path, clf, views, y, ids=IDS, details=lambda row: {"body": f"<b>{row}</b>", "photo": photo}, **more)
    return path


def positions(browser):
    """Where each sample is on the screen."""
    return browser.execute_script(
        "const c = document.getElementById('map-canvas'), m = c.sampleMap, b = c.getBoundingClientRect();"
        "return m.data.x.map((x, i) => m.toScreen(x, m.data.y[i])).map(([x, y]) => [x + b.left, y + b.top]);"
    )


def lonely(browser):
    """A sample with no other near it, and its place."""
    spots = np.array(positions(browser))
    apart = np.hypot(*(spots[:, None] - spots).transpose(2, 0, 1)) + np.where(np.eye(len(spots)), np.inf, 0)
    inner = (np.abs(spots - spots.mean(axis=0)) < np.ptp(spots, axis=0) / 3).all(axis=1)
    best = int(np.where(inner, apart.min(axis=1), 0).argmax())
    assert apart[best].min() > 16
    return best, spots[best]


def to_map(browser):
    browser.execute_script("document.getElementById('map-frame').scrollIntoView({block: 'center'})")
    return browser.find_element(By.ID, "map-canvas")


def view_box(browser):
    script = "const v = document.getElementById('map-canvas').sampleMap.view; return [v.x, v.y, v.width, v.height]"
    return browser.execute_script(script)


def legend_contrasts(browser):
    """Contrast of each dot of the legend with the page."""
    script = (
        "return [document.body, ...document.querySelectorAll('.legend svg')]"
        ".map((e, at) => getComputedStyle(e)[at ? 'color' : 'backgroundColor'])"
    )
    parts = [[int(number) / 255 for number in re.findall(r"\d+", one)[:3]] for one in browser.execute_script(script)]
    linear = np.where(np.array(parts) <= 0.04045, np.array(parts) / 12.92, ((np.array(parts) + 0.055) / 1.055) ** 2.4)
    light = linear @ [0.2126, 0.7152, 0.0722] + 0.05
    return np.maximum(light[1:] / light[0], light[0] / light[1:])


def move_to(browser, spot):
    actions = ActionChains(browser, duration=0)
    actions.w3c_actions.pointer_action.move_to_location(round(spot[0]), round(spot[1]))
    return actions


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "media"), [(390, "screen"), (1200, "screen"), (688, "print")])  # A4 has 688
def test_no_errors_no_requests_and_no_scrolling_sideways(browser, page, width, scheme, media):
    requests(browser)
    show(browser, page, width, scheme, media)
    assert complaints(browser) == []
    assert [url for url in requests(browser) if url != page.as_uri()] == []
    script = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
    assert browser.execute_script(script) == 0
    ground, ink = brightness(browser, "backgroundColor"), brightness(browser, "color")
    dark = scheme == "dark" and media == "screen"
    assert (ground < 0.2 and ink > 0.8) if dark else (ground > 0.95 and ink < 0.2)
    # Dots of the legend stand out from the ground (WCAG wants 3:1 of graphics; the palette's yellow on white has less).
    assert not dark or min(legend_contrasts(browser)) > 3


def test_names_run_nothing(browser, page):
    show(browser, page, 1200)
    assert browser.title == "Made up"
    assert browser.execute_script("return document.scripts.length") == 2


def test_the_mouse_shows_and_marks_samples(browser, page):
    show(browser, page, 1200)
    to_map(browser)
    tip = browser.find_element(By.ID, "map-tip")
    assert not tip.is_displayed()
    one, spot = lonely(browser)
    move_to(browser, spot).perform()
    assert tip.is_displayed()
    assert tip.text.startswith(f"{IDS[one]}: ")
    assert browser.find_element(By.ID, "map-said").text == ""
    ActionChains(browser, duration=0).click().perform()
    said = browser.find_element(By.ID, "map-said").text
    assert said.startswith(tip.text)
    assert "Labelled samples that count most: " in said.removeprefix(tip.text)
    row = browser.find_element(By.ID, "map-row")
    assert row.text.split("\n") == ["body", f"<b>{one}</b>", "photo"]
    image = row.find_element(By.TAG_NAME, "img")
    WebDriverWait(browser, 10).until(lambda _: image.get_property("naturalWidth") == 8)
    assert image.get_attribute("alt") == f"photo of {IDS[one]}"
    box = browser.execute_script("return document.getElementById('map-frame').getBoundingClientRect().toJSON()")
    inside = browser.execute_script("return document.getElementById('map-tip').getBoundingClientRect().toJSON()")
    assert box["left"] <= inside["left"]
    assert inside["right"] <= box["right"]
    assert inside["bottom"] <= box["bottom"]
    assert complaints(browser) == []


def test_buttons_zoom_and_dragging_moves(browser, page):
    show(browser, page, 1200)
    to_map(browser)
    whole = view_box(browser)
    assert not browser.find_element(By.ID, "map-out").is_enabled()
    browser.find_element(By.ID, "map-in").click()
    browser.find_element(By.ID, "map-in").click()
    closer = view_box(browser)
    assert closer[2] == pytest.approx(whole[2] / 1.5**2)
    assert closer[0] + closer[2] / 2 == pytest.approx(whole[0] + whole[2] / 2)
    svg = to_map(browser)
    ActionChains(browser, duration=0).drag_and_drop_by_offset(svg, 60, 0).perform()
    moved = view_box(browser)
    assert moved[0] < closer[0]
    assert moved[1:] == pytest.approx(closer[1:])
    # What is under the mouse is still found.
    one, spot = lonely_on_screen(browser)
    move_to(browser, spot).perform()
    assert browser.find_element(By.ID, "map-tip").text.startswith(f"{IDS[one]}: ")
    browser.find_element(By.ID, "map-home").click()
    assert view_box(browser) == whole
    assert complaints(browser) == []


def lonely_on_screen(browser):
    box = browser.execute_script("return document.getElementById('map-canvas').getBoundingClientRect().toJSON()")
    spots = np.array(positions(browser))
    apart = np.hypot(*(spots[:, None] - spots).transpose(2, 0, 1)) + np.where(np.eye(len(spots)), np.inf, 0)
    seen = (
        (spots[:, 0] > box["left"] + 20)
        & (spots[:, 0] < box["right"] - 20)
        & (spots[:, 1] > max(box["top"], 0) + 20)
        & (spots[:, 1] < min(box["bottom"], 800) - 20)
    )
    best = int(np.where(seen, apart.min(axis=1), 0).argmax())
    return best, spots[best]


def test_the_keyboard_zooms_moves_and_walks_from_sample_to_sample(browser, page):
    show(browser, page, 1200)
    svg = to_map(browser)
    whole = view_box(browser)
    browser.execute_script("arguments[0].focus()", svg)
    svg.send_keys("+")
    assert view_box(browser)[2] == pytest.approx(whole[2] / 1.5)
    before = view_box(browser)
    svg.send_keys(Keys.ARROW_RIGHT)
    assert view_box(browser)[0] > before[0]
    svg.send_keys("-")
    svg.send_keys("0")
    assert view_box(browser) == whole
    said = browser.find_element(By.ID, "map-said")
    svg.send_keys(Keys.ENTER)
    here = said.text
    assert here.split(": ")[0] in IDS
    svg.send_keys(Keys.ARROW_LEFT)
    assert said.text.split(": ")[0] in IDS
    assert said.text != here
    assert browser.find_element(By.ID, "map-tip").is_displayed()
    svg.send_keys(Keys.ESCAPE)
    assert said.text == ""
    assert not browser.find_element(By.ID, "map-tip").is_displayed()
    assert complaints(browser) == []


def test_a_sample_can_be_found_by_its_name(browser, page):
    show(browser, page, 390)
    to_map(browser)
    field = browser.find_element(By.ID, "map-id")
    said = browser.find_element(By.ID, "map-said")
    field.send_keys("sample 42", Keys.ENTER)
    assert said.text.startswith("sample 42: ")
    view, (x, y) = (
        view_box(browser),
        browser.execute_script(
            "const m = document.getElementById('map-canvas').sampleMap; return [m.data.x[42], m.data.y[42]]"
        ),
    )
    assert abs(view[0] + view[2] / 2 - x) < 0.26 * view[2]  # in the middle, as far as the edge of the map allows
    assert view[0] < x < view[0] + view[2]
    assert view[1] < y < view[1] + view[3]
    field.clear()
    field.send_keys("nobody", Keys.ENTER)
    assert said.text == "nobody is not on the map"
    field.clear()
    field.send_keys(IDS[0], Keys.ENTER)
    assert said.text.startswith("<script>")
    assert browser.title == "Made up"
    assert complaints(browser) == []


def test_the_list_leads_to_the_map(browser, page):
    show(browser, page, 390)
    link = browser.find_element(By.CSS_SELECTOR, "a[data-i]")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", link)
    name = link.text
    link.click()
    assert browser.find_element(By.ID, "map-said").text.startswith(f"{name}: ")
    assert browser.switch_to.active_element.get_attribute("id") == "map-canvas"


def test_a_class_can_be_seen_alone(browser, page):
    show(browser, page, 1200)
    button = browser.find_elements(By.CSS_SELECTOR, "button[data-class]")[1]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    shown = (
        "const m = document.getElementById('map-canvas').sampleMap;"
        "return [...new Set(m.data.label.filter((code, i) => m.shown(i)))].sort()"
    )
    button.click()
    assert browser.execute_script(shown) == [1]  # given labels of the other classes are faint too
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert browser.execute_script(shown) == [0, 1, 2]


def test_the_tooltip_goes_with_the_mouse(browser, page):
    show(browser, page, 1200)
    to_map(browser)
    _, spot = lonely(browser)
    move_to(browser, spot).perform()
    assert browser.find_element(By.ID, "map-tip").is_displayed()
    box = browser.execute_script("return document.getElementById('map-canvas').getBoundingClientRect().toJSON()")
    move_to(browser, (box["left"] + 3, box["top"] - 20)).perform()
    assert not browser.find_element(By.ID, "map-tip").is_displayed()


def test_the_lasso_lists_what_is_inside(browser, page):
    show(browser, page, 1200)
    svg = to_map(browser)
    browser.find_element(By.ID, "map-lasso").click()
    svg = to_map(browser)
    width, height = svg.rect["width"], svg.rect["height"]
    actions = ActionChains(browser, duration=0).move_to_element_with_offset(svg, -width / 2 + 2, -height / 2 + 2)
    actions.click_and_hold()
    for dx, dy in ((width - 4, 0), (0, height - 4), (4 - width, 0)):
        actions.move_by_offset(int(dx), int(dy))
    actions.release().perform()
    assert browser.find_element(By.ID, "map-list-title").text.startswith(f"{N} samples: ")
    assert "sample 42" in browser.find_element(By.ID, "map-list-ids").text
    browser.find_element(By.ID, "map-lasso").click()
    assert not browser.find_element(By.ID, "map-list").is_displayed()
    assert complaints(browser) == []


def test_tables_sort_and_filter(browser, page):
    show(browser, page, 1200)
    names = "return [...document.querySelectorAll('#first tbody tr:not([hidden]) th')].map(one => one.textContent)"
    before = browser.execute_script(names)
    button = browser.find_element(By.CSS_SELECTOR, "#first thead th:nth-child(3) button")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    cells = "[...document.querySelectorAll('#first tbody tr td:nth-child(3)')]"
    column = f"return {cells}.map(one => parseFloat(one.textContent))"
    values = browser.execute_script(column)
    assert values == sorted(values)
    button.click()
    assert browser.execute_script(column) == sorted(values, reverse=True)
    field = browser.find_element(By.CSS_SELECTOR, "input[aria-label^='Filter: The samples to label next']")
    field.send_keys(before[0])
    assert before[0] in browser.execute_script(names)
    assert len(browser.execute_script(names)) < len(before)
    assert complaints(browser) == []


def test_a_finger_scrolls_the_page_until_the_map_is_zoomed(browser, page):
    show(browser, page, 390)
    svg = to_map(browser)
    touch = "return getComputedStyle(document.getElementById('map-canvas')).touchAction"
    assert browser.execute_script(touch) == "pan-y"
    browser.find_element(By.ID, "map-in").click()
    assert browser.execute_script(touch) == "none"
    width = view_box(browser)[2]
    box = svg.rect
    centre = browser.execute_script(
        "const b = document.getElementById('map-canvas').getBoundingClientRect();"
        "return [b.left + b.width / 2, b.top + b.height / 2]"
    )
    for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 60), ("touchEnd", None)):
        points = (
            []
            if apart is None
            else [{"x": centre[0] + s * apart, "y": centre[1], "id": i} for i, s in enumerate((-1, 1))]
        )
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert box["width"] > 300
    assert view_box(browser)[2] < 0.6 * width
    assert complaints(browser) == []


def test_boxes_that_scroll_can_be_reached_and_links_land(browser, page):
    show(browser, page, 390)
    assert count_unreachable_boxes(browser) == 0
    for link in browser.execute_script(
        "return [...document.querySelectorAll('nav a')].map(e => e.getAttribute('href'))"
    ):
        check_link(browser, link)


def test_paper_has_room_for_every_table(browser, page):
    show(browser, page, 688, media="print")  # A4 between its margins
    ends = browser.execute_script(
        "return [...document.querySelectorAll('main table, main svg:not(#map-canvas), main p, #map-frame')]"
        ".map(e => e.getBoundingClientRect().right)"
    )
    assert max(ends) <= 688
    assert not browser.find_element(By.ID, "map-controls").is_displayed()
