"""The report in a browser, where there is one: no message on the console, and two themes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml
from typer.testing import CliRunner

from conftest import ROOT
from dralloc.cli import app
from wire import claim, device_class, node, request, resource_slice

BROWSER: Final = (
    shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)
HEADLESS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--window-size=1200,2000",
    "--enable-logging=stderr",
)
DARK: Final = "--blink-settings=preferredColorScheme=0"
LIGHT: Final = "--blink-settings=preferredColorScheme=1"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("report") / "page.html"
    result = CliRunner().invoke(
        app,
        [
            "report",
            str(ROOT / "models" / "h100-mig-smallest"),
            "--to",
            str(path),
        ],
    )
    assert result.exit_code == 0
    return path


def shot(page: Path, scheme: str) -> tuple[bytes, str]:
    """The picture of a page, and what the browser wrote to its console."""
    assert BROWSER is not None
    picture = page.with_suffix(".png")
    arguments = [
        f"--user-data-dir={page.parent / 'profile'}",
        f"--screenshot={picture}",
        scheme,
        page.as_uri(),
    ]
    done = subprocess.run(
        [BROWSER, *HEADLESS, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return picture.read_bytes(), "\n".join(
        line for line in done.stderr.splitlines() if "CONSOLE" in line
    )


def test_both_themes_are_drawn_without_a_message(page: Path) -> None:
    light, dark = shot(page, LIGHT), shot(page, DARK)
    assert (light[1], dark[1]) == ("", "")
    assert light[0] != dark[0]


def test_a_message_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><title>wrong</title><script>console.error('wrong')</script>"
    )
    assert "wrong" in shot(page, LIGHT)[1]


TELL_WRAPPED: Final = """
<script>
for (const head of document.querySelectorAll("tbody th")) {
  const text = document.createRange();
  text.selectNodeContents(head);
  if (text.getClientRects().length > 1) console.error(head.textContent);
}
</script>
"""
"""Names that take more than one line, as messages."""


def test_names_stay_in_one_piece_beside_long_reasons(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    expression = 'device.attributes["gpu.example.com"].absent == "a"'
    asked = request("gpu", expression, device_class="gpu")
    objects = [
        node("node-a"),
        device_class("gpu"),
        resource_slice([{"name": "gpu-0"}], nodeName="node-a"),
        claim("wanted-by-somebody-in-a-hurry", asked),
    ]
    cluster.write_text(yaml.safe_dump_all(objects))
    page = tmp_path / "page.html"
    words = ["report", str(cluster), "--to", str(page)]
    assert CliRunner().invoke(app, words).exit_code == 0
    written = page.read_text()
    assert "consider using CEL optional chaining" in written
    page.write_text(written.replace("</body>", f"{TELL_WRAPPED}</body>"))
    assert shot(page, LIGHT)[1] == ""
