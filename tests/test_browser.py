"""The report in a real browser: nothing is fetched, nothing overflows, everything can be reached and seen."""

import shutil

import pytest

from browsing import brightness, check_link, complaints, count_unreachable_boxes, needs_browser, requests, show
from lmssc.paper.reproduction_page import write_report
from made_up import write_results

needs_browser()


@pytest.fixture(scope="module")
def page(tiny_figures, tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser") / "reproduce"
    shutil.copytree(tiny_figures[0], folder)
    write_results(folder)
    (folder.parent / "audit").mkdir()
    columns = "| a long name of a column " * 12 + "|\n"
    (folder.parent / "audit" / "audit.md").write_text(f"## Wide\n\n{columns}{'| --- ' * 12}|\n{columns}")
    return write_report(folder)


def test_no_errors_and_no_request_leaves_the_file(browser, page):
    browser.get_log("performance")
    show(browser, page, 1200)
    assert complaints(browser) == []
    asked = requests(browser)
    assert page.as_uri() in asked
    assert [url for url in asked if url != page.as_uri() and not url.startswith("data:")] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_never_scrolls_sideways(browser, page, width, scheme):
    show(browser, page, width, scheme)
    script = "const page = document.documentElement; return [page.clientWidth, page.scrollWidth]"
    assert browser.execute_script(script) == [width - scrollbar(browser), width - scrollbar(browser)]


def scrollbar(browser):
    return browser.execute_script("return innerWidth - document.documentElement.clientWidth")


# A4 between its margins, in pixels; the full tables are printed across.
@pytest.mark.parametrize(("width", "parts"), [(688, "section:not(#tables)"), (1031, "#tables")])
def test_paper_has_room_for_every_table_and_figure(browser, page, width, parts):
    show(browser, page, width, media="print")
    ends = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect().right)",
        ", ".join(f"{parts} {tag}" for tag in ("table", "svg", "p")),
    )
    assert len(ends) >= 3
    assert max(ends) <= width
    assert brightness(browser, "backgroundColor") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, page, scheme):
    show(browser, page, 1200, scheme)
    ground, ink = brightness(browser, "backgroundColor"), brightness(browser, "color")
    assert (ground < 0.2 and ink > 0.8) if scheme == "dark" else (ground > 0.95 and ink < 0.2)
    cards = "return [...document.querySelectorAll('.card')].map(e => getComputedStyle(e).backgroundColor)"
    assert set(browser.execute_script(cards)) == {"rgb(255, 255, 255)"}


def test_every_picture_is_there(browser, page):
    show(browser, page, 360)
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('figure svg, figure svg image')]"
        ".map(e => e.getBoundingClientRect()).map(box => [box.width, box.height])"
    )
    assert len(sizes) >= 7
    assert min(min(size) for size in sizes) > 0
    labels = browser.execute_script(
        "return [...document.querySelectorAll('svg')].map(e => e.getAttribute('aria-label'))"
    )
    assert len(labels) == 7
    assert all(labels)


def test_text_of_figures_can_be_read_on_a_phone(browser, page):
    show(browser, page, 360)
    heights = browser.execute_script(
        "return [...document.querySelectorAll('figure svg text')].map(e => {"
        "const matrix = e.getScreenCTM();"
        "return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(matrix.a, matrix.b); })"
    )
    assert min(heights) >= 8.5


def test_every_link_lands(browser, page):
    show(browser, page, 1200)
    links = browser.execute_script("return [...document.querySelectorAll('a')].map(e => e.getAttribute('href'))")
    assert len(links) > 10
    for link in links:
        check_link(browser, link)


def test_the_keyboard_reaches_all_boxes_that_scroll(browser, page):
    show(browser, page, 360)
    assert count_unreachable_boxes(browser) == 0
    browser.switch_to.active_element.send_keys("\ue004")  # the tab key
    assert browser.switch_to.active_element.get_attribute("class") == "skip"
