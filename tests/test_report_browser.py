"""The report page in a real browser: it is read, searched and leafed through, and nothing acts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import compare_folders
import pytest
from compare_folders import Made
from model_server import running
from publish_runs import card
from report_browser import Browser, chromium
from report_pages import HOSTILE, hostile_run, report, set_texts
from stored_runs import record, set_in_object

from qualeval.records import Completion


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as window:
        yield window


@pytest.fixture(autouse=True)
def as_it_was(browser: Browser) -> None:
    """Every test begins with a wide light window."""
    browser.width(1280)
    browser.media()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three parts with right, wrong and cut-off answers, one asked twice."""
    with running(slots=4) as server:
        run = record(tmp_path_factory.mktemp("page"), server)
    report(run)
    return run / "report.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = hostile_run(tmp_path_factory.mktemp("hostile"))
    report(run)
    return run / "report.html"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Made(tmp_path_factory.mktemp("pair"))
    base, new = folder.run("old", "rrrrwwcn"), folder.run("new", "rwcrrwrr")
    report(base, new)
    return new / "report-vs-old.html"


def rows(browser: Browser) -> list[str]:
    """Ids of the rows that are shown."""
    found = browser.js(
        "return [...document.querySelectorAll('#list .id')].map((e) => e.textContent)"
    )
    return [str(id) for id in found]


def quiet(browser: Browser) -> None:
    """No message in the console, no violation of the policy, nothing asked for."""
    assert browser.complaints() == []
    assert browser.requests() == []


def test_page_shows_its_table_and_its_plot(browser: Browser, page: Path) -> None:
    """One row a part, with a figure that says in words what it draws."""
    browser.open(page)
    titles = [cell.text for cell in browser.all("table.results .name")]
    assert titles == ["MMLU-Pro", "GPQA Diamond", "GPQA 30, thinking on"]
    assert "50.0 %" in browser.text("table.results")
    assert len(browser.all(".plot circle.point")) == 3
    assert "MMLU-Pro (own list): 50.0 %" in browser.text("#plot-d")
    crossed = """
        const boxes = (name) =>
            [...document.querySelectorAll(name)].map((e) => e.getBoundingClientRect());
        const meet = (a, b) =>
            a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;
        const lines = boxes(".plot .grid");
        return boxes(".plot text").filter((text) => lines.some((line) => meet(line, text)));
    """
    assert browser.js(crossed) == [], "no line goes through a word"
    quiet(browser)


def test_filters_narrow_the_list_and_stand_in_the_address(browser: Browser, page: Path) -> None:
    """By part, outcome and stratum; the count is announced."""
    browser.open(page)
    all_of_them = len(rows(browser))
    browser.choose("#f-part", "mmlupro")
    assert len(rows(browser)) == 8 < all_of_them
    browser.choose("#f-outcome", "cut off")
    assert rows(browser) == ["3", "4"]
    assert browser.text("#count").startswith("2 of")
    assert browser.one("#count").get_attribute("aria-live") == "polite"
    assert browser.driver.current_url.endswith("#part=mmlupro&outcome=cut+off")
    browser.one("#f-clear").click()
    assert len(rows(browser)) == all_of_them
    browser.choose("#f-part", "gpqa")
    values = [option.get_attribute("value") for option in browser.all("#f-stratum option")]
    browser.choose("#f-stratum", str(values[-1]))
    assert 0 < len(rows(browser)) < 20
    quiet(browser)


def test_address_opens_the_answer_that_it_names(browser: Browser, page: Path) -> None:
    """A link can be kept, also of the second answer to a question."""
    browser.open(page, "#part=think&id=3&repeat=1")
    assert browser.one("#one h3").text == "3"
    assert "answer 2" in browser.one("#one .sub").text
    assert len(rows(browser)) == 16


def test_address_of_an_open_answer_names_its_part_too(browser: Browser, page: Path) -> None:
    """Parts may share ids: `think` asks 30 of the questions of `gpqa`."""
    browser.open(page)
    parts = browser.js(
        "return [...document.querySelectorAll('#list .row')]"
        ".map((e) => [e.querySelector('.id').textContent, e.querySelector('.where').textContent])"
    )
    shared = [n for n, (id, part) in enumerate(parts) if id.startswith("3") and "think" in part]
    browser.js("document.querySelectorAll('#list .row')[arguments[0]].click()", shared[0])
    said = browser.text("#one .sub")
    assert "of=think" in browser.driver.current_url
    browser.driver.refresh()
    browser.until(lambda: browser.all("#one .sub") != [])
    assert said == browser.text("#one .sub")


def test_search_finds_replies_reasons_and_reasoning(browser: Browser, page: Path) -> None:
    """In any case, and ids."""
    browser.open(page)
    browser.press("/", *"WHO KNOWS")
    browser.until(lambda: {"2", "2 #1", "2 #2"} <= set(rows(browser)) and len(rows(browser)) < 10)
    assert browser.one("#f-search").get_attribute("value") == "WHO KNOWS"
    for wanted in ("red? no.", "several letters"):
        browser.js(
            "const f = document.getElementById('f-search'); f.value = arguments[0];"
            "f.dispatchEvent(new Event('input'))",
            wanted,
        )
        browser.until(lambda: not browser.text("#count").startswith("0 "))
        assert rows(browser)
    quiet(browser)


def test_keys_move_open_and_close(browser: Browser, page: Path) -> None:
    """j and k move, Enter opens, Escape closes and leaves the focus where it was."""
    browser.open(page)
    browser.press("j", "j")
    second = browser.focused()
    assert second.split("\n")[1].startswith("1")
    browser.press("k", "j", "\ue007")  # Enter
    assert browser.one("#one").is_displayed()
    assert browser.one("#one h3").text == "1"
    assert "mmlupro" not in browser.one("#one").text
    browser.press("\ue00c")  # Escape
    assert not browser.one("#one").is_displayed()
    assert browser.focused() == second
    browser.press("\ue007")
    browser.js("document.querySelector('#list button').focus()")
    browser.press("\ue015")  # arrow down, with an answer open: the next one opens
    assert browser.one("#one h3").text == "1"
    quiet(browser)


def type_search(browser: Browser, wanted: str) -> None:
    """Type it and wait until the list has followed."""
    browser.press("/", *wanted)
    browser.until(lambda: "q=" in browser.driver.current_url)


def test_escape_clears_the_search_and_then_leaves_the_field(browser: Browser, page: Path) -> None:
    """List, address and field follow: no filter is left that nobody sees."""
    browser.open(page)
    all_of_them = len(rows(browser))
    type_search(browser, "several")
    assert len(rows(browser)) < all_of_them
    browser.press("\ue00c")  # Escape
    assert browser.one("#f-search").get_attribute("value") == ""
    assert len(rows(browser)) == all_of_them
    assert "#" not in browser.driver.current_url
    assert browser.js("return document.activeElement.id") == "f-search"
    browser.press("\ue00c")
    assert browser.js("return document.activeElement.id") == ""
    quiet(browser)


def test_search_that_was_not_yet_made_is_not_made_after_escape(
    browser: Browser, page: Path
) -> None:
    """The list waits for the end of typing; that is over."""
    browser.open(page)
    browser.js(
        "const f = document.getElementById('f-search'); f.focus(); f.value = 'several';"
        "f.dispatchEvent(new Event('input'));"
        "f.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))"
    )
    browser.driver.execute_async_script("setTimeout(arguments[0], 200)")
    assert browser.one("#f-search").get_attribute("value") == ""
    assert "#" not in browser.driver.current_url


def entries(browser: Browser) -> int:
    """Entries of the window's history."""
    return int(browser.js("return history.length"))


def shown(browser: Browser) -> bool:
    return browser.one("#one").is_displayed()


def test_back_closes_an_open_answer(browser: Browser, page: Path) -> None:
    """And stays on the page: opening is one entry of the history, moving on is none."""
    browser.open(page, "#part=mmlupro")
    before = entries(browser)
    browser.press("j", "j", "\ue007")  # Enter
    assert entries(browser) == before + 1
    browser.press("j", "j")
    browser.js("document.querySelectorAll('#list button')[4].click()")
    assert browser.one("#one h3").text == "4" and entries(browser) == before + 1
    browser.driver.back()
    browser.until(lambda: not shown(browser))
    assert browser.driver.current_url.endswith("#part=mmlupro")
    assert len(rows(browser)) == 8
    assert browser.focused().split("\n")[1].startswith("4")
    browser.driver.forward()
    browser.until(lambda: shown(browser))
    assert browser.one("#one h3").text == "4"
    browser.driver.back()
    browser.until(lambda: not shown(browser))
    browser.driver.back()
    assert browser.driver.current_url == "about:blank"


def test_closing_leaves_no_entry_behind(browser: Browser, page: Path) -> None:
    """By Escape, by the button, or because a filter no longer finds the answer: Back leaves."""
    browser.open(page)
    before = entries(browser)
    row = "document.querySelector('#list button').click()"
    for close in (
        lambda: browser.press("\ue00c"),  # Escape
        lambda: browser.js("document.querySelector('#one .close').click()"),
        lambda: browser.choose("#f-outcome", "cut off"),
    ):
        browser.js(row)
        assert "id=" in browser.driver.current_url
        close()
        browser.until(lambda: "id=" not in browser.driver.current_url)
        assert not shown(browser) and entries(browser) == before + 1  # the one ahead
    assert browser.driver.current_url.endswith("#outcome=cut+off")
    assert len(rows(browser)) < 10
    browser.driver.back()
    assert browser.driver.current_url == "about:blank"


def test_filter_of_a_pair_is_kept_when_back_closes_an_answer(browser: Browser, pair: Path) -> None:
    """Also the one that the page opens with, which no address names."""
    browser.open(pair)
    for outcome, ids in (("changed", ["1", "2", "4", "6", "7"]), ("", [str(n) for n in range(8)])):
        browser.choose("#f-outcome", outcome)
        browser.js("document.querySelector('#list button').click()")
        browser.driver.back()
        browser.until(lambda: not shown(browser))
        assert rows(browser) == ids


def test_empty_list_says_so_and_how_to_go_on(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert not browser.one("#nothing").is_displayed()
    type_search(browser, "nowhere in it")
    browser.until(lambda: browser.one("#nothing").is_displayed())
    assert browser.one("#nothing").text == "No answer matches; clear the filters"
    browser.one("#f-clear-too").click()
    assert not browser.one("#nothing").is_displayed()
    assert rows(browser) and "#" not in browser.driver.current_url


def test_focus_is_visible_and_fields_have_names(browser: Browser, page: Path) -> None:
    """For eyes and for screen readers."""
    browser.open(page)
    browser.press("/")
    outline = browser.one("#f-search").value_of_css_property("outline-style")
    assert outline == "solid"
    for field in browser.all("#filters select, #filters input, button"):
        if field.is_displayed():
            assert field.accessible_name
    assert browser.one(".plot").aria_role in ("image", "img")
    assert browser.one(".plot").accessible_name == "Results with their 95 % intervals"
    assert browser.one("main").aria_role == "main"


def test_letter_that_decided_is_marked(browser: Browser, page: Path) -> None:
    """Also where colours are grey; and reasoning is folded."""
    browser.open(page, "#part=mmlupro&id=5&repeat=0")
    assert browser.one("#one mark").text == "B"
    assert browser.one("#one mark").value_of_css_property("outline-style") == "solid"
    fold = next(one for one in browser.all("#one details") if "Reasoning" in one.text)
    assert fold.get_attribute("open") is None
    assert "Red? No." in browser.text("#one")


def opened(browser: Browser, n: int) -> bool:
    return browser.one("#one h3").text == str(n)


def test_hostile_answers_show_and_run_nothing(browser: Browser, hostile: Path) -> None:
    """Each of them opened in full."""
    browser.open(hostile)
    for n in range(len(HOSTILE)):
        browser.js("location.hash = arguments[0]", f"part=mmlupro&id={n}")
        browser.until(partial(opened, browser, n))
        shown = browser.js(
            "const t = document.querySelector('#one pre').cloneNode(true);"
            "t.querySelectorAll('.control').forEach((c) => c.remove()); return t.textContent"
        )
        steers = (0, 0x1B, 0x2028, 0x2029, 0x202E, 0x202C, 0x2066, 0x2069, 0xD83D, 0xDC00)
        assert shown == "".join(c for c in HOSTILE[n] if ord(c) not in steers)
    assert browser.js("return window.__pwned") is None
    assert browser.all("#one img, #one iframe, #one script, #one svg, #one a, #one style") == []
    browser.until(lambda: browser.one("main").is_displayed())
    quiet(browser)


def test_steering_characters_are_shown_as_marks(browser: Browser, hostile: Path) -> None:
    """The text after an override keeps its direction."""
    browser.open(hostile, "#id=5")
    marks = [mark.text for mark in browser.all("#one pre .control")]
    assert marks == [
        *("U+2028", "U+2029", "U+202E", "U+202C", "U+2066", "U+2069", "U+0000", "U+001B"),
    ]
    browser.open(hostile, "#id=6")
    assert [mark.text for mark in browser.all("#one pre .control")] == ["U+D83D", "U+DC00"]


def test_line_of_a_megabyte_comes_in_pieces(browser: Browser, hostile: Path) -> None:
    """It is all there, and the page stays quick and narrow."""
    browser.open(hostile, f"#id={len(HOSTILE)}")
    assert len(browser.text("#one pre")) == 20_000
    assert browser.overflow() <= 0
    for _ in range(3):
        browser.js("document.querySelector('#one .more').click()")
    assert len(browser.text("#one pre")) == 1_000_000
    assert not browser.one("#one .more").is_displayed()


def test_steering_characters_without_end_do_not_stop_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    """Many marks are written as letters."""
    run = Made(tmp_path).run("marks", "rw")
    set_texts(run, {0: {"text": "\u202e" * 300_000, "details": None}})
    report(run)
    browser.open(run / "report.html", "#id=0")
    assert browser.text("#one pre").startswith("⟦U+202E⟧⟦U+202E⟧")
    assert browser.js("return document.querySelectorAll('*').length") < 1_000


def test_thousands_of_answers_are_a_page_at_a_time(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """13,000 answers: the page holds the rows of one page, and its texts unread."""
    long = {
        letter: Completion(text="because " * 60 + f"\nAnswer: {text}", finish_reason="stop")
        for letter, text in (("r", "B"), ("w", "A"))
    }
    monkeypatch.setattr(compare_folders, "REPLIES", long)
    run = Made(tmp_path).run("many", "rw" * 6_500)
    report(run)
    assert (run / "report.html").stat().st_size < 20_000_000
    browser.open(run / "report.html")
    assert len(rows(browser)) == 100
    assert browser.js("return document.querySelectorAll('*').length") < 2_500
    assert "13,000 of 13,000 answers, 1 to 100" in browser.text("#count")
    browser.one("#page-on").click()
    assert rows(browser)[0] == "100" and "101 to 200" in browser.text("#count")
    browser.press("p", "p")
    assert rows(browser)[0] == "0"
    browser.press("n")
    assert rows(browser)[0] == "100" and browser.focused().split("\n")[1] == "100"
    browser.choose("#f-outcome", "wrong")
    assert "6,500 of 13,000 answers, 1 to 100" in browser.text("#count")
    quiet(browser)


def test_page_without_answers_opens(browser: Browser, tmp_path: Path) -> None:
    """A run that has only begun."""
    run = Made(tmp_path).run("begun", "    ")
    report(run)
    browser.open(run / "report.html")
    assert browser.text("#count") == "0 of 0 answers"
    browser.press("j", "k", "/", "x")
    quiet(browser)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the largest numbers that a row has, an incomplete part, and what others say."""
    folder = tmp_path_factory.mktemp("wide")
    run = Made(folder).run("wide", "rrrc")
    Made(folder).run("wide", "rr  ", part="gpqa")
    counts = {"right": 10_000, "n": 12_000, "errors": 12_000}
    set_in_object(run / "mmlupro.summary.json", **counts, ci_low=1.0, ci_high=1.0)
    source = "https://e.example/" + "a-long-path/" * 20
    reference = {"label": "theirs, with a long name", "value": 66.67, "unit": "%"}
    card(run, references=[reference | {"date": "2026-09-30", "source": source}])
    report(run)
    return run / "report.html"


@pytest.mark.parametrize("name", ["page", "pair", "wide"])
@pytest.mark.parametrize("width", [320, 380, 720, 768, 850, 961, 1024, 1100, 1217, 1440])
def test_tables_fit_their_window(
    browser: Browser, name: str, width: int, request: pytest.FixtureRequest
) -> None:
    """No column is behind a sideways scroll, which nobody sees; no line under a row is cut."""
    browser.width(width)
    browser.open(request.getfixturevalue(name))
    assert browser.beyond("main .scroll > table") == []
    assert browser.overflow() <= 0
    verdicts = browser.all("table.differences .verdict")
    assert all(one.is_displayed() for one in verdicts) and bool(verdicts) == (name == "pair")


@pytest.mark.parametrize("name", ["page", "pair", "hostile"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_a_narrow_screen_in_both_schemes(
    browser: Browser, name: str, scheme: str, request: pytest.FixtureRequest
) -> None:
    """360 pixels, everything unfolded, with and without an answer open."""
    browser.media(scheme=scheme)
    browser.width(360, 780)
    browser.open(request.getfixturevalue(name))
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert browser.overflow() <= 0
    browser.js("document.querySelector('#list button').click()")
    assert browser.one("#one").is_displayed()
    assert browser.overflow() <= 0
    quiet(browser)


def test_answer_on_a_narrow_screen_hides_what_is_behind_it(browser: Browser, page: Path) -> None:
    """It covers the page: neither keys nor a screen reader reach the list, and j opens the next."""
    browser.width(360, 780)
    browser.open(page)
    browser.press("j", "\ue007")  # Enter
    assert browser.focused() == browser.one("#one h3").text == "0"
    assert browser.one(".list").get_property("inert")
    assert browser.one(".top").get_property("inert")
    browser.press("j")
    assert browser.focused() == browser.one("#one h3").text == "1"
    browser.press("\ue00c")  # Escape
    assert not browser.one(".list").get_property("inert")
    assert browser.focused().split("\n")[1].startswith("1")
    quiet(browser)


def test_program_keeps_its_lines(browser: Browser, tmp_path: Path) -> None:
    """Also one wider than the window: its own box scrolls, by keys as well, and not the page."""
    run = Made(tmp_path).run("program", "rw")
    program = "def f():\n    return " + " + ".join(["x"] * 400)
    set_texts(run, {0: {"extracted": program, "details": None}})
    report(run)
    browser.width(360, 780)
    browser.open(run / "report.html", "#id=0")
    shown = browser.one("#one pre.code")
    assert shown.text.splitlines() == program.splitlines()
    assert browser.js("return arguments[0].scrollWidth > arguments[0].clientWidth", shown)
    assert browser.overflow() <= 0
    assert shown.accessible_name == "What was read of the reply"
    assert shown.get_property("tabIndex") == 0


@pytest.mark.parametrize("width", [320, 700, 1280])
def test_instructions_are_told_once_and_keep_their_names_whole(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    """What the table says is not said above it too; a name breaks between its words only."""
    run = Made(tmp_path).run("instructions", "rc")
    id, why = "detectable_format:number_highlighted_sections", "found 1, wanted 3"
    lists: dict[str, object] = {"strict_inst": [False], "loose_inst": [False]}
    lists |= {"instructions": [id], "why": [why]}
    fields = {"reason": f"{id} not followed: {why}.", "details": lists}
    set_texts(run, {0: fields, 1: fields | {"reason": "The answer was cut off."}})
    report(run)
    browser.width(width)
    browser.open(run / "report.html", "#id=0")
    assert browser.text("#one").count(why) == 1
    assert browser.text("#one .instructions th") == id
    assert browser.beyond("#one .instructions") == []
    lines = browser.js(
        "const range = document.createRange(), lines = new Map();"
        "for (const text of document.querySelector('#one .instructions bdi').childNodes) {"
        "  for (let n = 0; n < text.length; n += 1) {"
        "    range.setStart(text, n); range.setEnd(text, n + 1);"
        "    const top = range.getBoundingClientRect().top;"
        "    lines.set(top, (lines.get(top) || '') + text.data[n]);"
        "  }"
        "}"
        "return [...lines.values()]"
    )
    assert "".join(lines) == id and all(line[-1] in ":_" for line in lines[:-1])
    browser.open(run / "report.html", "#id=1")
    assert browser.text("#one .reason") == "The answer was cut off.", "which no table says"


@pytest.mark.parametrize("name", ["page", "pair"])
def test_headings_skip_no_level(
    browser: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    """With an answer open."""
    browser.open(request.getfixturevalue(name))
    browser.js("document.querySelector('#list button').click()")
    levels = browser.js(
        "return [...document.querySelectorAll('h1, h2, h3, h4, h5')].map((h) => h.tagName[1] * 1)"
    )
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_outcome_of_an_answer_begins_at_the_edge_when_it_has_its_own_line(
    browser: Browser, page: Path
) -> None:
    """On a telephone."""
    browser.width(320, 780)
    browser.open(page, "#part=mmlupro&id=4&repeat=0")
    line, chip = browser.one("#one .sub").rect, browser.one("#one .sub .chip").rect
    if chip["y"] > line["y"] + 10:
        assert chip["x"] == line["x"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(browser: Browser, page: Path, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: at least 4.5 to 1 for every text that is shown."""
    browser.media(scheme=scheme)
    browser.open(page, "#part=mmlupro&id=4&repeat=0")
    assert browser.js(CONTRAST) == []


CONTRAST = """
const numbers = (c) => c.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const ground = (e) => {
  for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
const poor = new Set();
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || !e.checkVisibility() || e.closest("svg, script, option, :disabled")) continue;
  const both = [light(numbers(getComputedStyle(e).color)), light(ground(e))];
  const [a, b] = both.sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) poor.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
}
return [...poor];
"""


def test_paper_has_table_and_plot_and_no_answers(browser: Browser, page: Path) -> None:
    """In black on white, whatever the screen shows."""
    browser.media(scheme="dark", kind="print")
    browser.open(page)
    assert browser.one("table.results").is_displayed()
    assert browser.one(".plot").is_displayed()
    # A page of paper may end between two rows of the plot, and the axis stays with its last row.
    assert browser.one("figure").value_of_css_property("break-inside") == "auto"
    assert len(browser.all(".plot svg")) == len(browser.all(".plot .label")) + 1
    assert browser.one(".plot .ticks").value_of_css_property("break-before") == "avoid"
    assert not browser.one("#answers").is_displayed()
    assert browser.one("body").value_of_css_property("background-color") == "rgba(255, 255, 255, 1)"


def test_differences_fit_on_paper(browser: Browser, pair: Path) -> None:
    """A4 between its margins: names stay words, and no column is lost."""
    browser.media(kind="print")
    browser.width(718, 1000)
    browser.open(pair)
    assert browser.overflow() <= 0
    names = browser.one("table.differences .main th")
    assert names.rect["width"] >= 70
    assert names.rect["height"] < 60
    edge = browser.one("table.differences .main td:last-child").rect
    assert edge["x"] + edge["width"] <= 719  # pixels are fractions


def test_flips_stand_side_by_side(browser: Browser, pair: Path) -> None:
    """A comparison opens with what changed; both replies in two columns of one height."""
    browser.open(pair)
    assert sorted(rows(browser)) == ["1", "2", "4", "6", "7"]
    browser.choose("#f-outcome", "lost")
    assert rows(browser) == ["1", "2"]
    browser.js("document.querySelectorAll('#list button')[1].click()")
    base, new = browser.all("#one .side")
    assert "base: old" in base.text and "right" in base.text
    assert "new: new" in new.text and "cut off" in new.text
    assert base.rect["y"] == new.rect["y"] and base.rect["x"] < new.rect["x"]
    browser.choose("#f-outcome", "")
    assert len(rows(browser)) == 8
    quiet(browser)


def test_rule_of_a_part_leads_to_its_answers(browser: Browser, page: Path) -> None:
    """From the counts of a part to the list."""
    browser.open(page)
    browser.js("document.querySelector('#part-mmlupro').open = true")
    link = next(a for a in browser.all("#part-mmlupro .chips a") if a.text == "cut_off")
    link.click()
    browser.until(lambda: rows(browser) == ["3", "4"])
    assert "rule cut_off" in browser.text("#count")
