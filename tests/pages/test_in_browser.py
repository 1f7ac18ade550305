"""Pages as Chromium shows them: without a network, on a phone and a desk, in both themes.

These tests run where a Chromium is installed; `conftest` says where it looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, Request, ViewportSize, sync_playwright

import joinsim as js
from tests.conftest import BROWSER

pytestmark = pytest.mark.xdist_group("browser")  # pages are made once, and one browser opens them

QUERY = (
    "SELECT * FROM R, S WHERE R.k = S.k "
    "AND R.ts BETWEEN S.ts - INTERVAL '50 us' AND S.ts + INTERVAL '50 us'"
)
FAULTS = [{"kind": "crash", "actor": "oij.0*", "start": 100_000, "end": 200_000}]
Theme = Literal["light", "dark"]
THEMES, WIDTHS = ("light", "dark"), (400, 1400)

_DRAW_ALL = """async () => {
  const step = innerHeight / 2;
  for (let y = 0; y < document.body.scrollHeight; y += step) {
    scrollTo(0, y);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)));
  }
  scrollTo(0, 0);
}"""
"""Pictures are drawn when they come into view, which the browser looks for once a frame: on a busy
machine a frame may take longer than the pause."""

_ALL_DRAWN = """() => [...document.querySelectorAll(".panel")].every(
  (panel) => panel.querySelector(".role-mark"))"""

_MARKS = """() => [...document.querySelectorAll(".panel")].map(
  (panel) => panel.querySelectorAll(".role-mark path, .role-mark text, .role-mark line").length)"""

_BROKEN = """() => [...document.querySelectorAll("svg *")].filter((mark) =>
  ["d", "transform", "x", "y", "width", "height"].some(
    (name) => /NaN|undefined|Infinity/.test(mark.getAttribute(name)))).length"""

_CUT_OFF = """() => [...document.querySelectorAll("body *")].filter((element) => {
  const box = element.getBoundingClientRect();
  if (!box.width || getComputedStyle(element).visibility === "hidden") return false;
  for (let around = element.parentElement; around; around = around.parentElement)
    if (getComputedStyle(around).overflowX !== "visible") return false;  // it scrolls
  return box.left < -1 || box.right > document.documentElement.clientWidth + 1;
}).map((element) => element.tagName + " " + element.textContent.slice(0, 40))"""

_CLIPPED = """() => [...document.querySelectorAll(".panel")].flatMap((panel) => {
  const room = panel.getBoundingClientRect();
  return [...panel.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.width && getComputedStyle(text).opacity !== "0"
      && (box.left < room.left - 1 || box.right > room.right + 1);
  }).map((text) => text.textContent);
})"""

_FAINT = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((one) => one / 255)
      .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let around = element; around; around = around.parentElement) {
      const colour = getComputedStyle(around).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = [];
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest("script, style, svg")) continue;
    if (!element.getBoundingClientRect().width) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const enough = /^[^\\p{L}\\p{N}]*$/u.test(texts.currentNode.data) ? 3 : 4.5;
    if (ratio < enough) faint.push(`${texts.currentNode.data.trim()}: ${ratio.toFixed(2)}`);
  }
  return faint;
}"""
"""By WCAG 2.2, level AA: text has a contrast of 4.5, a sign of 3."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=BROWSER, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    streams = {
        name: js.synthetic(400, {"k": "uniform(0, 9)"}, seed=seed) for seed, name in enumerate("RS")
    }
    recovering: dict[str, Any] = {"faults": FAULTS, "recovery": {"interval": "100 us"}}
    runs = [
        js.run(QUERY, streams, topology="kp_oij", **how)
        for how in ({}, {"replicas": 2}, recovering)
    ]
    compared = js.compare(QUERY, streams, topologies=["kp_oij", "scale_oij"])
    swept = js.sweep(QUERY, streams, over={"replicas": [1, 2]}, topology="kp_oij", processes=1)
    advice = js.advise(QUERY, streams, engines="", budget_s=5)
    study = js.scenario("pim-fig09b", scale="smoke").run(out=folder / "study")
    return {
        "run": runs[0].report(folder / "run.html"),
        "run with a crash": runs[2].report(folder / "crash.html"),
        "runs": js.report(runs[:2], folder / "runs.html"),
        "comparison": compared.report(folder / "compare.html"),
        "sweep": swept.report(folder / "sweep.html"),
        "advice": advice.report(folder / "advice.html"),
        "study": study.directory / "study.html",
    }


KINDS = ("run", "run with a crash", "runs", "comparison", "sweep", "advice", "study")


@contextmanager
def opened(
    browser: Browser, file: Path, theme: Theme, width: int
) -> Iterator[tuple[Page, list[str]]]:
    """Open a page without a network and draw all of it; the list grows with what it complains of.

    A complaint is a message on the console, an error, or a request to a server.
    """
    size = ViewportSize(width=width, height=900)
    with closing(browser.new_context(color_scheme=theme, viewport=size, offline=True)) as context:
        page = context.new_page()
        complaints: list[str] = []

        def note_request(request: Request) -> None:
            if request.url.startswith("http"):
                complaints.append(f"asks for {request.url}")

        page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", note_request)
        page.goto(file.as_uri())
        page.evaluate(_DRAW_ALL)
        page.wait_for_function(_ALL_DRAWN)
        yield page, complaints


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_drawn_whole_and_can_be_read(
    kind: str, theme: Theme, width: int, browser: Browser, pages: dict[str, Path]
) -> None:
    with opened(browser, pages[kind], theme, width) as (page, complaints):
        assert complaints == []
        marks = page.evaluate(_MARKS)
        assert marks
        assert min(marks) > 0
        assert page.evaluate(_BROKEN) == 0
        assert page.evaluate(_CUT_OFF) == []
        assert page.evaluate(_CLIPPED) == []
        assert page.evaluate(_FAINT) == []


def test_a_picture_is_zoomed_and_its_numbers_are_shown_by_keyboard(
    browser: Browser, pages: dict[str, Path]
) -> None:
    with opened(browser, pages["run"], "light", 1400) as (page, complaints):
        picture = page.locator("figure:has(.zoom)").first
        axis = picture.locator(".role-axis text")
        before = sorted(axis.all_text_contents())
        picture.locator(".zoom button").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        assert sorted(axis.all_text_contents()) != before
        for _ in range(4):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # the whole again
        page.wait_for_timeout(300)
        assert sorted(axis.all_text_contents()) == before
        numbers = picture.locator("summary")
        for _ in range(3):
            if numbers.evaluate("(one) => one === document.activeElement"):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_timeout(200)
        assert picture.locator("details td").first.is_visible()
        assert complaints == []


def test_what_is_under_the_pointer_is_named(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["comparison"], "dark", 1400) as (page, _):
        page.locator(".role-mark path").first.hover()
        page.wait_for_timeout(200)
        assert "_oij" in page.locator("#vg-tooltip-element").inner_text()
