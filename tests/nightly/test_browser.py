# SPDX-License-Identifier: BSD-3-Clause
"""The page in a browser: it loads nothing, and markup in the data stays text."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from datasets import make_class_blobs
from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.by import By
from typer.testing import CliRunner

from leaveout.cli._app import app

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        BROWSER is None or DRIVER is None,
        reason="Chromium and its driver are not installed: "
        "apt-get install chromium chromium-driver",
    ),
]
EVIL = "<script>alert(1)</script>"
MARKUP = "<img src=http://127.0.0.1:9/x onerror=alert(2)>"
IDS = [f"<b>{k}</b>" for k in range(60)]
FLAGS = """--headless --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage
    --disable-background-networking --disable-component-update --disable-sync""".split()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A page by the command line on a table full of markup, and the same as JSON."""
    path = tmp_path_factory.mktemp("page") / "table.csv"
    X, y = make_class_blobs(60, n_classes=2, separation=1.0, random_state=0)
    table = pd.DataFrame({"id": IDS, "a": X[:, 0], "b": X[:, 1]})
    table[EVIL] = np.where(np.arange(60) % 3, "x", MARKUP)
    table[f"class {EVIL}"] = np.where(y == 1, EVIL, MARKUP)
    table.to_csv(path, index=False)
    page = path.with_name("page.html")
    how = ["--target", f"class {EVIL}", "--id", "id", "--grid", "C=0.1,1,10", "--json"]
    command = ["select", str(path), *how, "--report", str(page)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    return page.as_uri(), json.loads(result.stdout)["best"]["n_wrong"]


@pytest.fixture
def page(made):
    """The page in a new browser."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in FLAGS:
        options.add_argument(flag)
    logs = {"browser": "ALL", "performance": "ALL"}
    options.set_capability("goog:loggingPrefs", logs)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.get(made[0])
    yield driver
    driver.quit()


def visible_rows(browser):
    """The rows of the table of samples that are to be seen, as lists of text."""
    return browser.execute_script(
        """return [...document.querySelectorAll("#samples tbody tr")]
           .filter((row) => row.offsetParent !== null)
           .map((row) => [...row.cells].map((cell) => cell.textContent))"""
    )


def click_heading(browser, name):
    headings = browser.find_elements(By.CSS_SELECTOR, "#samples th button")
    (heading,) = [h for h in headings if h.text.split(" ")[0] == name]
    heading.click()


def test_nothing_is_loaded_and_markup_in_the_data_is_text(page, made):
    images = page.execute_script(
        "return [...document.images].map((i) => i.complete && i.naturalWidth > 0)"
    )
    assert images == [True] * 4  # grid, over C, ROC, margins
    assert page.get_log("browser") == []
    events = [json.loads(e["message"])["message"] for e in page.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    asked = [event["request"]["url"] for event in sent]
    assert [u for u in asked if not u.startswith("data:")] == [made[0]]
    with pytest.raises(NoAlertPresentException):
        page.switch_to.alert  # noqa: B018, raises if no script called alert
    text = page.find_element(By.TAG_NAME, "body").text
    assert f"'{EVIL}' (2 categories)" in text  # the name of a column
    rows = visible_rows(page)
    assert {row[1] for row in rows} == set(IDS)
    assert {row[2] for row in rows} == {EVIL, MARKUP}
    assert len(page.find_elements(By.TAG_NAME, "script")) == 1  # the table's own
    assert page.find_elements(By.CSS_SELECTOR, "b, img:not([src^='data:'])") == []


def test_requests_and_scripts_are_stopped(page):
    page.execute_script(
        """const image = new Image(); image.src = "http://127.0.0.1:9/x";
        document.body.append(image);
        const script = document.createElement("script");
        script.textContent = "document.title = 'taken over'";
        document.body.append(script);"""
    )
    told = " ".join(entry["message"] for entry in page.get_log("browser"))
    assert "http://127.0.0.1:9/x" in told
    assert told.count("Content Security Policy") >= 2
    assert "taken over" not in page.title


def test_the_table_sorts_filters_and_prints_the_errors_alone(page, made):
    before = visible_rows(page)
    assert len(before) == 60
    for name, column, key in [("row", 0, int), ("margin", 4, float)]:
        for order in ("ascending", "descending"):
            click_heading(page, name)
            found = [key(row[column]) for row in visible_rows(page)]
            assert found == sorted(found, reverse=order == "descending")
    assert sorted(visible_rows(page)) == sorted(before)
    click_heading(page, "id")
    assert [row[1] for row in visible_rows(page)] == IDS  # 2 before 10, though text
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    printed = visible_rows(page)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    page.find_element(By.ID, "filter").send_keys("wrong")
    wrong = visible_rows(page)
    assert len(wrong) == made[1] > 0
    assert {row[5] for row in wrong} == {"wrong"}
    assert printed == wrong
    assert page.find_element(By.ID, "shown").text == f"{len(wrong)} of 60"
    click_heading(page, "row")
    assert sorted(visible_rows(page)) == sorted(wrong)  # sorting keeps the filter
