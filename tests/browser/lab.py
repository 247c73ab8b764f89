"""A real JupyterLab on this machine, driven by a headless Chromium: for tests alone, it asks for no password.

Home folder and settings are its own, so that nothing of the user's decides what is tested.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[2]
READY = '[data-tnb="root"][data-ready="true"]'
STATE = "application/vnd.jupyter.widget-state+json"
SECONDS = 90


def wait_for(probe: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
    """The first true value that `probe` gives."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            value = probe()
            if value:
                return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class Lab:
    """A server; use as a context manager.  save_state: are the states of widgets saved with a notebook?"""

    def __init__(self, save_state: bool, theme: str = "JupyterLab Light"):
        self.home = Path(tempfile.mkdtemp(prefix="tilelang-nb-lab-"))
        self.root = self.home / "notebooks"
        self.root.mkdir()
        settings = {
            "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": save_state},
            "@jupyterlab/apputils-extension/themes": {"theme": theme},
            "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
            "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
        }
        for name, value in settings.items():
            path = self.home / "config/lab/user-settings" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value))
        paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {
            **os.environ,
            "HOME": str(self.home),
            "PATH": os.pathsep.join(paths),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "JUPYTER_CONFIG_DIR": str(self.home / "config"),
            "JUPYTER_DATA_DIR": str(self.home / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.home / "runtime"),
            "JUPYTER_PREFER_ENV_PATH": "1",
        }

    def __enter__(self) -> Lab:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = (self.home / "lab.log").open("w")
        options = {
            "ip": "127.0.0.1",
            "port": port,
            "ServerApp.port_retries": 0,
            "IdentityProvider.token": "",
            "ServerApp.password": "",
            "ServerApp.root_dir": self.root,
            "ServerApp.disable_check_xsrf": True,
        }
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            env=self.environment,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        wait_for(lambda: self.ask("/api/status"), "JupyterLab")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        with contextlib.suppress(Exception):
            self.end_sessions()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()
        if kind is not None:
            print((self.home / "lab.log").read_text()[-3000:])
        shutil.rmtree(self.home, ignore_errors=True)

    def ask(self, path: str, data: Any = None, method: str | None = None) -> Any:
        """The answer of the server's interface."""
        body = json.dumps(data).encode() if data is not None else None
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def end_sessions(self) -> None:
        """End every kernel."""
        for session in self.ask("/api/sessions"):
            self.ask(f"/api/sessions/{session['id']}", method="DELETE")

    # -- notebooks

    def write(self, name: str, cells: Sequence[str]) -> None:
        """A notebook of code cells, the extension loaded in the first."""
        code = [nbformat.v4.new_code_cell(cell) for cell in ["%load_ext tilelang_nb", *cells]]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(nbformat.v4.new_notebook(cells=code, metadata={"kernelspec": kernel}), self.root / name)

    def read(self, name: str) -> Any:
        return nbformat.read(self.root / name, as_version=4)

    def states(self, name: str) -> dict[str, Any]:
        """The states of widgets that a saved notebook holds."""
        return self.read(name).metadata.get("widgets", {}).get(STATE, {}).get("state", {})

    # -- pages

    def open(self, browser: Any, name: str, kernel: bool = True, width: int = 1300) -> Any:
        """A page with a notebook.  kernel: with one that waits for cells; else to look at what was saved.

        A kernel is started before the page opens, and the page is awaited by what the server says: cells that are sent
        before both sides are connected are lost without a word.
        """
        if kernel:
            asked = {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
            self.ask("/api/sessions", asked)
        page = browser.new_page(viewport={"width": width, "height": 1000})
        page.faults = []
        page.on("console", lambda message: page.faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.goto(f"{self.url}/lab/tree/{name}?reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=SECONDS * 1000)
        if kernel:
            wait_for(lambda: self.connected(name), "the kernel")
            page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', timeout=SECONDS * 1000)
        return page

    def connected(self, name: str) -> bool:
        """Is a page connected to the kernel of a notebook, and the kernel idle?"""
        return any(
            session["path"] == name
            and session["kernel"]["execution_state"] == "idle"
            and session["kernel"]["connections"] > 0
            for session in self.ask("/api/sessions")
            if session["kernel"]
        )

    def run_all(self, page: Any, views: int) -> None:
        """Run all cells, until as many views as expected are drawn."""
        page.click("text=Run >> nth=0")
        page.click('li[data-command="runmenu:run-all"]')
        self.await_views(page, views)

    @staticmethod
    def await_views(page: Any, views: int) -> None:
        page.wait_for_function(f"document.querySelectorAll('{READY}').length == {views}", timeout=SECONDS * 1000)

    def save(self, page: Any, name: str) -> None:
        """Save the notebook and wait until it is written."""
        before = (self.root / name).stat().st_mtime_ns
        page.locator(".jp-Notebook .jp-CodeCell .jp-InputPrompt").first.click()
        page.keyboard.press("Control+s")
        wait_for(lambda: (self.root / name).stat().st_mtime_ns != before, "saving")
        wait_for(lambda: self.whole(name), "the saved notebook")

    def whole(self, name: str) -> bool:
        try:
            return bool(self.read(name).cells)
        except (ValueError, nbformat.reader.NotJSONError):
            return False

    def trust(self, name: str) -> None:
        """Sign a notebook, so that its scripts and widgets may run."""
        command = [sys.executable, "-m", "jupyter", "trust", str(self.root / name)]
        subprocess.run(command, env=self.environment, check=True, capture_output=True)
