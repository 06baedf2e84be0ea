"""Nothing that a model, a file or a tool says runs in the page; and the page is accessible."""

import itertools
import json
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

from tests.interfaces.web.site import Site, edit, ended, read, ready, send
from tests.pipelines.agents import agent

RUN = "window.ran=1"
TEMPLATES = (
    "<script>{0}</script>",
    "<img src=x onerror={0}>",
    "<svg onload={0}>",
    "<svg><script>{0}</script></svg>",
    "<iframe srcdoc='<script>parent.{0}</script>'></iframe>",
    "<details open ontoggle={0}>x</details>",
    "<body onload={0}>",
    "<input autofocus onfocus={0}>",
    "<a href='javascript:{0}'>click</a>",
    "[click](javascript:{0})",
    "[click](JaVaScRiPt:{0})",
    "[click](data:text/html,<script>{0}</script>)",
    "![x](javascript:{0})",
    "<math><mtext></mtext><script>{0}</script></math>",
    "`<script>{0}</script>`",
    "```html\n<script>{0}</script>\n```",
    '```mermaid\nflowchart LR\nA["<img src=x onerror={0}>"] --> B\n```',
    "| a |\n|---|\n| <script>{0}</script> |",
    "</textarea><script>{0}</script>",
    "</title><script>{0}</script>",
    '"><script>{0}</script>',
    "' onmouseover='{0}",
    '" autofocus onfocus="{0}',
    "--><script>{0}</script>",
    "]]><script>{0}</script>",
    "</pre></code><script>{0}</script>",
    "javascript:{0}",
    "&lt;script&gt;{0}&lt;/script&gt;",
    '<a href="&#106;avascript:{0}">x</a>',
    "<base href='javascript:{0}//'>",
    "<link rel=stylesheet href='data:,*{{x:expression({0})}}'>",
    "<style>@import 'javascript:{0}';</style>",
    "<form action=javascript:{0}><button>x</button></form>",
    "<button formaction=javascript:{0}>x</button>",
    "<object data='javascript:{0}'></object>",
)
WRAPS = ("{0}", "<div>{0}</div>", "**{0}**")
PAYLOADS = [wrap.format(each.format(RUN)) for wrap, each in itertools.product(WRAPS, TEMPLATES)]
NAMES = [each.replace("/", "∕") for each in PAYLOADS if len(each) < 90 and "\n" not in each][:12]  # noqa: RUF001


def check(page: Page, *, click: bool = False) -> None:
    """Nothing ran, and no element was made that could; also not after a click on every link of the text."""
    if click:
        for link in page.locator(".answer a, .answer [title]").all():
            link.dispatch_event("click")
    assert page.evaluate("window.ran") is None
    made = "#log script, #log iframe, #log object, #log form:not([data-act]), #log img, #log base, #log style"
    assert page.locator(made).count() == 0
    named = "(e) => [...e.attributes].some((a) => a.name.startsWith('on'))"
    assert not page.evaluate(f"[...document.querySelectorAll('*')].some({named})")


@pytest.mark.promise("WEB-11")
def test_no_payload_runs_in_answers_tool_output_names_and_imported_sessions(
    site: Site, page: Page, tmp_path: Path
) -> None:
    assert len(PAYLOADS) >= 100
    for name in NAMES:
        (site.root / "src" / name).write_text(f"{PAYLOADS[0]}\n")
    text = "\n\n".join(PAYLOADS)
    (site.root / "src" / "page.html").write_text(text)
    listing = {"name": "list", "arguments": {"path": "src"}}
    shout = {"name": "run", "arguments": {"command": f"cat src/page.html # {PAYLOADS[0]}"}}
    asked = {"name": "ask_user", "arguments": {"question": text[:2000], "options": PAYLOADS[:6]}}
    named = {"name": "read", "arguments": {"path": f"src/{NAMES[0]}"}}
    site.open(
        page,
        {"text": text, "thinking": text, "calls": [listing, named, read("src/page.html")]},
        {"calls": [edit(site, "src/page.html", PAYLOADS[1], PAYLOADS[2])]},
        {"calls": [shout]},
        {"calls": [asked]},
        {"text": text},
        HANDRAIL_MODE="edit",
    )
    page.on("dialog", lambda dialog: dialog.dismiss())
    send(page, PAYLOADS[0])
    page.locator(".card.command.waiting [data-act=approve]").first.wait_for()
    check(page)
    page.locator(".card.command.waiting [data-act=approve]").first.click()
    page.locator(".question.waiting button.chip").first.wait_for()
    check(page)
    page.locator(".question.waiting button.chip").first.click()
    ended(page)
    check(page, click=True)
    page.reload()
    ready(page)
    check(page)
    session = page.url.rpartition("/")[2]
    site.run("sessions", "rename", session, PAYLOADS[0][:100])
    site.run("export", session, str(tmp_path / "x.handrail"))
    agent(site.root, prompt="\n".join(PAYLOADS))
    for path in (
        "audit",
        f"audit/{session}/1",
        f"s/{session}/changes/1",
        "charts",
        "agents/small",
        "skills",
        f"blame?path=src/{NAMES[1]}",
    ):
        page.goto(site.place(path))
        ready(page)
        check(page)
    page.goto(site.place("viewer"))
    ready(page)
    page.set_input_files("#viewed", tmp_path / "x.handrail")
    expect(page.locator("#viewer .answer").first).to_be_visible()
    check(page, click=True)


@pytest.mark.promise("WEB-11")
def test_policy_of_the_page_forbids_inline_scripts(site: Site, page: Page) -> None:
    site.open(page, {"text": "Hello."})
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran=1\">')")
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran=2'}))"
    )
    assert page.evaluate("window.ran") is None


@pytest.mark.promise("WEB-12")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_the_main_views(site: Site, page: Page, theme: str) -> None:
    change = {"text": "So:", "calls": [edit(site, "src/cart.py", "subtotal + tax", "subtotal")]}
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1  # one\n```\n\n```sh\nls\n```\n"
    agent(site.root)
    site.open(page, {"calls": [read("src/cart.py"), read("nothing")]}, change, {"text": table})
    page.context.add_cookies([{"name": "handrail_theme", "value": theme, "url": site.place("")}])
    send(page, "fix it")
    expect(page.locator(".card.change.waiting")).to_be_visible()
    page.reload()
    ready(page)
    found = problems(page, "waiting")
    page.locator("[data-act=approve]").first.click()
    ended(page)
    found += problems(page, "conversation")
    page.click("#tab-changes")
    expect(page.locator(".change-row")).to_be_visible()
    found += problems(page, "changes")
    session = page.url.rpartition("/")[2]
    for path in (
        "",
        "intents",
        "audit",
        f"audit/{session}/1",
        "charts",
        "agents",
        "agents/small",
        "builds",
        "settings",
        "viewer",
        f"s/{session}/changes/1",
    ):
        page.goto(site.place(path))
        ready(page)
        found += problems(page, path)
    assert not found, "\n".join(found)


def problems(page: Page, where: str) -> list[str]:
    response = Axe().run(page).response
    return [
        f"{where}: {each['help']}: {json.dumps([node['html'][:160] for node in each['nodes'][:3]])}"
        for each in response["violations"]
    ]
