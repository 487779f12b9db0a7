"""The report in a real browser: on a desk, on a phone, in the dark and on paper. Pictures are kept in out/look."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from assay_agent.report import render_report
from tests.unit.report_findings import findings

OUT = Path(__file__).parents[2] / "out" / "look"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_report(findings()), encoding="utf-8")
    OUT.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "make look needs Chromium: install the package `chromium`"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


def opened(browser: Browser, page_file: Path, *, width: int, scheme: str = "light") -> tuple[Page, list[str]]:
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
    )
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(page_file.as_uri())
    return page, requests


def shot(page: Page, name: str) -> Image.Image:
    path = OUT / f"{name}.png"
    page.screenshot(path=str(path), full_page=True)
    return Image.open(path).convert("RGB")


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize(
    ("name", "width"), [("desk", 1280), ("tablet", 820), ("phone", 390), ("small-phone", 320)]
)
def test_page_fits_its_window_and_loads_nothing_else(
    browser: Browser, page_file: Path, name: str, width: int
) -> None:
    page, requests = opened(browser, page_file, width=width)
    picture = shot(page, name)
    assert overflow(page) <= 0
    assert requests == [page_file.as_uri()]
    assert picture.width == width
    assert picture.height > 1500


def test_charts_are_drawn_and_readable(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file, width=1280)
    boxes = [box for chart in page.locator("svg.chart").all() if (box := chart.bounding_box())]
    assert len(boxes) >= 2
    assert all(box["width"] > 500 and box["height"] > 100 for box in boxes)
    assert page.locator("svg .marked").count() >= 2


def test_dark_scheme_is_dark_and_legible(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file, width=1280, scheme="dark")
    picture = shot(page, "dark")
    corner = picture.getpixel((5, 5))
    assert isinstance(corner, tuple)
    assert max(corner) < 60
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert min(int(part) for part in ink[4:-1].split(",")) > 180


def test_paper_shows_the_evidence_that_is_folded_on_screen(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file, width=1280)
    page.emulate_media(media="print")
    shot(page, "print")
    heights = [
        box["height"] for code in page.locator("details.evidence pre").all() if (box := code.bounding_box())
    ]
    assert heights
    assert min(heights) > 10
    assert overflow(page) <= 0
    page.pdf(path=str(OUT / "report.pdf"), format="A4")
    assert (OUT / "report.pdf").stat().st_size > 20_000


def test_details_open_and_links_lead_to_their_target(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file, width=1280)
    page.locator("details.evidence summary").first.click()
    assert page.locator("details.evidence[open] table").first.is_visible()
    page.locator(".summary a").first.click()
    assert page.url.endswith("#i-00000000-0000-0000-0000-000000000001") or "#i-" in page.url
