"""The page's place Knowledge: documents, hits with marked words, a paragraph in its place, the state."""

import os
import shutil
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

from tests.interfaces.web.site import Site, ready, send
from tests.interfaces.web.test_safety import PAYLOADS
from tests.pipelines.agents import EXAMPLES
from tests.pipelines.research.questions import NIGHT, PASSENGERS, QUESTION, answers

HARBOUR = "# Harbour\n\n## Fees\n\nEvery boat pays a keel fee of nine grains.\n\n" + "\n\n".join(
    f"## Pier {number}\n\nPier number {number} is closed at low water." for number in range(60)
)


def shown(site: Site, page: Page, address: str) -> None:
    page.goto(site.place(address))
    ready(page)


@pytest.mark.promise("KB-14")
def test_a_hit_is_marked_and_leads_to_its_place_in_the_document(site: Site, page: Page) -> None:
    (site.root / "harbour.md").write_text(HARBOUR)
    (site.root / "fees.py").write_text("def fee(boat):\n    return 9\n")
    site.open(page, {"text": "Hello."}, path="knowledge")
    expect(page.locator(".empty")).to_contain_text("handrail kb add")
    assert not list(Path(os.environ["HANDRAIL_HOME"]).glob("**/knowledge.db")), "looking must not make a base"
    assert site.run("kb", "add", ".").returncode == 0
    shown(site, page, "knowledge")
    expect(page.locator("main")).to_contain_text("4 documents, 64 paragraphs · search by words")
    expect(page.locator("main")).to_contain_text("Search is by words alone")
    page.get_by_label("Find").fill("keel fees")
    page.get_by_label("Tier").select_option("standard")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".hit")).to_have_count(1)
    assert page.locator(".hit mark").all_inner_texts() == ["keel", "fee"]
    page.locator(".hit a").click()
    here = page.locator(".paragraph.here")
    expect(here).to_contain_text("Every boat pays a keel fee")
    expect(here).to_contain_text("line 5")
    expect(page.locator(".paragraph").nth(1)).to_contain_text("Pier number 0 ")
    page.get_by_role("link", name="later").first.click()
    expect(page.locator(".paragraph").last).to_contain_text("Pier number 59 ")
    assert page.get_by_role("link", name="later").count() == 0
    shown(site, page, "knowledge?q=zebra")
    expect(page.locator(".empty")).to_contain_text("Nothing was found")
    page.goto(site.place("knowledge/gone-12345678?p=123"))
    expect(page.locator("main")).to_contain_text("There is no document 'gone-12345678'")
    page.set_viewport_size({"width": 390, "height": 760})
    for address in ("knowledge", "knowledge?q=keel+boat"):
        shown(site, page, address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).response["violations"]
        assert [each["id"] for each in found] == []


@pytest.mark.promise("KB-14")
def test_nothing_that_a_document_says_runs(site: Site, page: Page) -> None:
    texts = [f"# {each}\n\nkeel {each}\n" for each in PAYLOADS[:40]]
    (site.root / "hostile.md").write_text("\n\n".join(texts))
    assert site.run("kb", "add", "hostile.md", "--name", PAYLOADS[0], "--tier", PAYLOADS[1]).returncode == 0
    (site.root / "page.html").write_text("<title><b>x</b></title><p>keel <img src=x onerror='window.ran=1'>")
    assert site.run("kb", "--user", "add", "page.html").returncode == 0
    site.open(page, {"text": "Hello."}, path="knowledge")
    link = str(page.locator("table.list a").first.get_attribute("href")).removeprefix("/w/shop/")
    for address in ("knowledge", "knowledge?q=keel", "knowledge?q=%3Cscript%3E+keel+window", link):
        shown(site, page, address)
        expect(page.locator("main")).to_contain_text("window.ran=1")
        assert page.evaluate("window.ran") is None
        assert page.locator("main :is(script, iframe, object, img, base, style, svg)").count() == 0
    shown(site, page, "knowledge")
    page.get_by_label("Base").select_option("Yours, in every workspace")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("main")).to_contain_text("1 document, 1 paragraph")
    page.locator("table.list a").click()
    expect(page.locator(".paragraph")).to_contain_text("keel")
    assert page.evaluate("window.ran") is None


@pytest.mark.promise("RESEARCH-1")
def test_a_report_leads_to_the_paragraph_that_it_quotes(site: Site, page: Page) -> None:
    """Catches: a source in a report that only names its place."""
    shutil.copy(EXAMPLES / "knowledge" / "ferry-rules.md", site.root)
    assert site.run("kb", "add", "ferry-rules.md").returncode == 0
    site.open(page, *answers(), HANDRAIL_MODE="edit")
    send(page, f"@research quick: {QUESTION}")
    expect(page.locator("#log")).to_contain_text("This is what I would look up.")
    expect(page.locator("#log")).to_contain_text("analyse")
    send(page, "1")
    report = page.locator("article.answer")
    expect(report).to_contain_text("Written to reports/")
    expect(page.locator("#log")).to_contain_text("synthesise")
    quotes = report.locator("details").filter(has_text="Evidence")
    expect(quotes.get_by_text(NIGHT)).not_to_be_visible()
    quotes.locator("summary").click()
    expect(quotes.get_by_text(NIGHT)).to_be_visible()
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).response["violations"]
    assert [each["id"] for each in found] == []
    page.reload()
    ready(page)
    report.get_by_role("link", name="ferry-rules.md: Ferry rules, line 3").first.click()
    expect(page.locator(".paragraph.here")).to_contain_text(PASSENGERS)
    page.goto(site.place("agents"))
    page.locator("main").get_by_role("link", name="research").last.click()
    page.get_by_role("link", name="ferry-rules.md: Ferry rules, line 3").first.click()
    expect(page.locator(".paragraph.here")).to_contain_text(PASSENGERS)
