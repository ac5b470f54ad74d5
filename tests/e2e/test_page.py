"""The page in a browser: what it shows is what the guard has, also when things fail."""
import json
import time

import pytest
import redis

import browser as browsers
from following import follow  # noqa: F401, a fixture
from servers import PATIENCE
from waiting import wait_until

needs_browser = pytest.mark.skipif(not browsers.is_there(), reason=browsers.REASON)

# Of all text that is seen: too little contrast with what is behind it (WCAG 2.1, 1.4.3).
FAINT = """
function parse(color) { return color.match(/[\\d.]+/g).map(Number); }
function light([r, g, b]) {
  const linear = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}
function behind(element) {
  for (; element; element = element.parentElement) {
    const color = parse(getComputedStyle(element).backgroundColor);
    if (color.length < 4 || color[3] === 1) return color;
  }
  return [255, 255, 255];
}
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
  if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName)) continue;
  const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) found.push([walker.currentNode.data.trim(), contrast]);
}
return found;
"""


@pytest.fixture(scope="module")
def chromium():
    made = browsers.Browser()
    yield made
    made.quit()


@pytest.fixture
def page(chromium):
    """page(guard) opens it, and waits until it shows what the guard has."""
    def open_page(guard, shown="#all"):
        chromium.look()
        chromium.open(guard)
        wait_until(lambda: chromium.text(shown), PATIENCE, f"{shown} to be shown")
        return chromium

    chromium.complaints()  # of tests before
    yield open_page
    chromium.driver.get("about:blank")


def wait_text(page, selector, wanted):
    wait_until(lambda: wanted in page.text(selector), PATIENCE,
               lambda: f"{wanted!r} in {selector}: {page.text(selector)!r}")


def requests_of(page):
    """[path, ...] of all that the page has asked for."""
    return page.run("return performance.getEntriesByType('resource').map(e => new URL(e.name))"
                    ".map(u => u.pathname)")


def of_keyspace(name, part=""):
    return f"tr[data-keyspace='{name}'] {part}"


@needs_browser
def test_it_shows_what_the_guard_has(follow, database, items, page):
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, total text)")
    orders = {"name": "orders", "key": "order:{id}", "table": "orders", "value": "total"}
    guard = follow(items(), orders)
    for key in ("item:1", "item:1", "item:999"):
        guard.redis().get(key)
    shown = page(guard)
    assert shown.text("#state") == "guarding"
    assert shown.text("#version") == guard.status()["version"]
    assert shown.text("#generation") == f"generation {guard.generation()}"
    for name, keys in (("items", 100), ("orders", 0)):
        keyspace = guard.keyspace(name)
        row = shown.text(of_keyspace(name))
        assert f"{keyspace['key']} · {keyspace['table']}" in row
        assert keyspace["reason"] in row and "guarding" in row
        assert f"{keys} keys" in row and keyspace["filter"]["keys"] == keys
    assert shown.text("#cache-state") == shown.text("#database-state") == "up"
    assert f"127.0.0.1:{guard.status()['backends']['cache']['nodes'][0]['address'].split(':')[1]}" \
        in shown.text("#cache-said")
    wait_text(shown, "#log", "guarding")
    assert shown.complaints() == []
    assert set(requests_of(shown)) == {"/v1/status", "/v1/log"}


@needs_browser
def test_it_draws_what_is_asked(start_guard, items, page):
    guard = start_guard(items())
    shown = page(guard)
    client = guard.redis()

    def asks():
        for n in range(500):
            client.get(f"item:{1000 + n}")
        client.get("item:1")
        return [shown.text(f"#rate-{name}") for name in ("reject", "hit")] + [
            shown.text(of_keyspace("items", "td:nth-child(3)"))]

    wait_until(lambda: all(text not in ("–", "0") for text in asks()), PATIENCE, asks)
    assert shown.text("#rate-error") == "0"
    wait_until(lambda: "L" in shown.find("svg.reject .trace").get_attribute("d"), PATIENCE,
               "a line from one answer to the next")
    assert "a second" in shown.find("svg.reject").get_attribute("aria-label")


@needs_browser
def test_it_says_that_it_passes_and_why_while_the_database_is_down(follow, database, items, page):
    guard = follow(items())
    shown = page(guard)
    database.server.stop()
    wait_text(shown, "#state", "passing")
    wait_text(shown, "#database-state", "down")
    wait_text(shown, "#told", "Nothing is rejected of items")
    wait_text(shown, of_keyspace("items", ".why"), guard.keyspace()["reason"])
    wait_text(shown, "#build-error", "the last build failed")
    assert guard.status()["backends"]["database"]["error"] in shown.text("#database-said")
    assert "passing" in shown.driver.title
    database.server.start()
    wait_text(shown, "#state", "guarding")
    wait_text(shown, "#database-state", "up")
    assert shown.text("#told") == ""


@needs_browser
def test_it_says_why_loads_are_refused_while_the_keyspace_guards(
        start_guard, database, items, page):
    guard = start_guard(items())
    database.execute("REVOKE SELECT ON items FROM guard; GRANT SELECT (id) ON items TO guard")
    with pytest.raises(redis.ResponseError):
        guard.redis().get("item:5")
    shown = page(guard)
    why = of_keyspace("items", ".why")
    wait_until(lambda: "permission denied" in shown.text(why), PATIENCE, lambda: shown.text(why))
    database.execute("GRANT SELECT ON items TO guard")
    assert guard.redis().get("item:5") == b"payload 5"
    wait_until(lambda: "permission denied" not in shown.text(why), PATIENCE, "it to be past")


@needs_browser
def test_it_shows_a_build_that_waits(follow, database, items, page):
    guard = follow(items())
    shown = page(guard)
    with database.locked():
        guard.control("POST", "/v1/rebuild")
        wait_text(shown, "#build-said", "waits for")
        assert "; waits " + guard.status()["building"]["waits"] in shown.text("#build-said")
    wait_text(shown, "#generation", "generation 2")
    wait_until(lambda: shown.text("#build-said") == "", PATIENCE, "the end of the build")


@needs_browser
def test_it_says_that_the_guard_does_not_answer(start_guard, items, page):
    guard = start_guard(items())
    shown = page(guard)
    guard.pause()
    wait_text(shown, "#trouble", "does not answer since")
    assert shown.text("#state") == "no answer"
    guard.resume()
    wait_text(shown, "#state", "guarding")
    assert shown.text("#trouble") == ""


@needs_browser
def test_it_asks_for_the_token_once_and_keeps_it_for_the_tab(start_guard, items, page):
    guard = start_guard(items(), control_token="open sesame")
    shown = page(guard, shown="#token")
    assert shown.text("#all") == ""
    shown.focused().send_keys("wrong", browsers.Keys.ENTER)
    wait_text(shown, "#refused", "did not accept")
    shown.find("#secret").send_keys("open sesame", browsers.Keys.ENTER)
    wait_text(shown, "#state", "guarding")
    assert "open sesame" not in shown.driver.page_source
    shown.driver.refresh()
    wait_text(shown, "#state", "guarding")
    assert shown.run("return [localStorage.length, document.cookie]") == [0, ""]


@needs_browser
@pytest.mark.parametrize("key, words", [
    ("item:1", ["passed on", "items, guarding", "possible"]),
    ("item:999", ["rejected", "absent", "row in the database\nno"]),
    ("item:9'\"/?#%", ["rejected"]),
    ("item:<img src=x onerror=alert(1)>", ["<img src=x", "rejected"]),
    ("other", ["not guarded"])])
def test_it_explains_a_key(start_guard, items, page, key, words):
    guard = start_guard(items())
    shown = page(guard)
    shown.find("#key").send_keys(key, browsers.Keys.ENTER)
    for word in words:
        wait_text(shown, "#explained", word)
    if guard.explain(key).get("why"):
        assert guard.explain(key)["why"] in shown.text("#explained")
    assert shown.run("return document.querySelectorAll('img').length") == 0


@needs_browser
def test_what_strangers_choose_stays_text(start_guard, database, items, page):
    """A table may be called whatever its owner likes, and the log has the names of files."""
    name = "<img src=x onerror=document.title=1>"
    database.execute(f'CREATE TABLE "{name}" (id bigint PRIMARY KEY, payload text)')
    guard = start_guard({**items(), "table": f'"{name}"'})
    shown = page(guard)
    assert name in shown.text(of_keyspace("items"))
    guard.control("PUT", "/v1/keys/item:%3Cscript%3Ealert(1)")
    wait_text(shown, "#log", "item:%3Cscript")
    assert shown.run("return document.querySelectorAll('img').length") == 0
    assert shown.complaints() == []


@needs_browser
def test_a_keyboard_is_enough(start_guard, items, page):
    shown = page(start_guard(items()))
    seen = []
    for _ in range(6):
        shown.focused().send_keys(browsers.Keys.TAB)
        seen.append(shown.run("const at = document.activeElement;"
                              "return at.id || at.innerText.trim().split('\\n')[0]"))
    assert [name for name in seen if name in ("key", "Explain", "log")] == ["key", "Explain", "log"]
    unnamed = shown.run("return [...document.querySelectorAll('input, button, meter, svg[role], "
                        "[role=region]')].filter(e => e.checkVisibility() && !(e.labels?.length || "
                        "e.ariaLabel || e.getAttribute('aria-labelledby') || e.innerText))"
                        ".map(e => e.outerHTML)")
    assert unnamed == []


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read(start_guard, items, page, scheme):
    shown = page(start_guard(items()))
    shown.look(scheme=scheme)
    assert shown.run(FAINT) == []
    shown.run("document.querySelectorAll('[hidden]').forEach(e => e.hidden = false)")
    assert shown.run(FAINT) == [], "what is shown in trouble"
    for width in (320, 390, 800):
        shown.look(width, 800, scheme)
        assert shown.run("return document.documentElement.scrollWidth") <= width


@needs_browser
def test_nobody_is_asked_while_the_page_is_hidden(start_guard, items, page):
    shown = page(start_guard(items()))

    def hide(hidden):
        shown.run("Object.defineProperty(document, 'hidden', {value: arguments[0],"
                  " configurable: true}); document.dispatchEvent(new Event('visibilitychange'))",
                  hidden)

    def asked():
        return len(requests_of(shown))

    hide(True)
    under_way = asked() + 2
    time.sleep(2.5)  # nothing happens: there is no condition to wait for
    assert asked() <= under_way
    hide(False)
    wait_until(lambda: asked() > under_way, PATIENCE, "it asks again")


def test_the_page_may_run_nothing_but_its_own_script(start_guard, items):
    guard = start_guard(items(), control_token="sesame")
    first, second = (guard.control("GET", "/", headers={"Authorization": ""}) for _ in range(2))
    assert first.status_code == 200
    assert first.headers["Content-Type"] == "text/html; charset=utf-8"
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    policy = dict(part.split(" ", 1) for part in
                  first.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["connect-src"] == "'self'"
    nonce = policy["script-src"][len("'nonce-"):-1]
    assert policy["script-src"] == policy["style-src"] == f"'nonce-{nonce}'"
    assert first.text.count(nonce) == 2 and "{nonce}" not in first.text
    assert nonce not in second.text, "a new word each time"
    for word in ("http://", "https://", "innerHTML", "insertAdjacentHTML", "document.write"):
        assert word not in first.text.replace("http://www.w3.org/2000/svg", "")
    assert len(first.content) < 40_000
    assert guard.control("HEAD", "/").status_code == 200
    assert guard.control("POST", "/").status_code == 405


def test_a_name_that_leads_here_gets_no_page(start_guard, items):
    """DNS rebinding: a stranger's name in Host, where no token stands in the way."""
    guard = start_guard(items())
    for path in ("/", "/v1/log"):
        assert guard.control("GET", path, headers={"Host": "evil.example"}).status_code == 403


def test_the_log_is_told_from_a_line_on(start_guard, items):
    guard = start_guard(items(), control_token="sesame", password="swordfish")
    assert guard.control("GET", "/v1/log", headers={"Authorization": ""}).status_code == 401
    told = guard.control("GET", "/v1/log").json()
    numbers = [line["number"] for line in told["lines"]]
    assert numbers == list(range(1, told["last"] + 1))
    assert any("guarding" in line["message"] for line in told["lines"])
    assert {line["level"] for line in told["lines"]} <= {"info", "warning", "error"}
    for line in told["lines"]:
        assert f"{line['time']} {line['level']:<7} {line['message']}"[25:] in guard.log(lines=500)
    assert not {"sesame", "swordfish"} & set(json.dumps(told).split())
    guard.control("PUT", "/v1/keys/item:777")
    more = guard.control("GET", f"/v1/log?after={told['last']}").json()
    assert "item:777" in more["lines"][0]["message"]
    for wrong in ("x", "-1", "", "1x", "99999999999999999999999"):
        assert guard.control("GET", f"/v1/log?after={wrong}").status_code == 400
