"""A real ipykernel in a process of its own, driven by messages as a notebook front end does."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parents[2]
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Reply:
    """What a cell gave.  number: that of In[n].

    displays: the mime bundles of display_data; ids: their display ids; updates: display id -> the bundle put in its
    place; result: that of Out[n] or None; error: traceback text.  opened, changed, closed: widget models by their id,
    with their state; sent: other messages of theirs.
    """

    status: str = ""
    number: int = 0
    stdout: str = ""
    stderr: str = ""
    error: str = ""
    error_name: str = ""
    displays: list[dict[str, Any]] = field(default_factory=list)
    updates: dict[str, dict[str, Any]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    opened: dict[str, dict[str, Any]] = field(default_factory=dict)
    changed: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    result: dict[str, Any] | None = None

    @property
    def shown(self) -> str:
        """The plain text of everything displayed."""
        return "\n".join(str(bundle.get("text/plain", "")) for bundle in self.displays)

    @property
    def html(self) -> str:
        return "\n".join(str(bundle.get("text/html", "")) for bundle in self.displays)

    @property
    def value(self) -> str | None:
        """The plain text of the result."""
        return None if self.result is None else str(self.result["text/plain"])


def state(message: dict[str, Any]) -> dict[str, Any]:
    """The state of a widget model in a message, binary parts put in their places."""
    data = message["content"]["data"]
    for path, part in zip(data.get("buffer_paths", ()), message["buffers"]):
        target = data["state"]
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = bytes(part)
    return data["state"]


class LiveKernel:
    """Use as a context manager."""

    def __init__(self, *setup: str):
        self.setup = setup

    def __enter__(self) -> LiveKernel:
        self.manager = KernelManager(kernel_name="python3")
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        self.manager.start_kernel(
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            extra_arguments=["--log-level=ERROR"],
        )
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        for code in self.setup:
            reply = self.run(code)
            assert reply.status == "ok", reply.error
        return self

    def __exit__(self, *_: object) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    def run(self, code: str, timeout: float = 120, cell: str = "") -> Reply:
        """Execute one cell and collect all of its output.  cell: its id, as front ends send it."""
        reply = Reply()
        self.client.session.metadata = {"cellId": cell} if cell else {}

        def collect(message: dict[str, Any]) -> None:
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                setattr(reply, content["name"], getattr(reply, content["name"]) + content["text"])
            elif kind == "error":
                reply.error += ANSI.sub("", "\n".join(content["traceback"]))
                reply.error_name = content["ename"]
            elif kind == "display_data":
                reply.displays.append(content["data"])
                reply.ids.append(content.get("transient", {}).get("display_id", ""))
            elif kind == "update_display_data":
                reply.updates[content["transient"]["display_id"]] = content["data"]
            elif kind == "comm_open":
                reply.opened[content["comm_id"]] = state(message)
            elif kind == "comm_msg" and content["data"].get("method") == "update":
                reply.changed.append((content["comm_id"], state(message)))
            elif kind == "comm_msg" and content["data"].get("method") == "custom":
                reply.sent.append(content["data"]["content"])
            elif kind == "comm_close":
                reply.closed.append(content["comm_id"])
            elif kind == "execute_result":
                reply.result = content["data"]

        content = self.client.execute_interactive(code, output_hook=collect, timeout=timeout)["content"]
        reply.status, reply.number = content["status"], content["execution_count"]
        for page in content.get("payload", []):
            if page.get("source") == "page":
                reply.stdout += ANSI.sub("", page["data"].get("text/plain", ""))
        return reply

    def complete(self, code: str, position: int | None = None) -> list[str]:
        """The completions that a front end would offer at a position, the end of the code by default."""
        self.client.complete(code, position)
        return self.client.get_shell_msg(timeout=60)["content"]["matches"]

    def run_all(self, *cells: str) -> list[str]:
        """Queue cells as Run All does; the status of each."""
        asked = [self.client.execute(code, stop_on_error=True) for code in cells]
        states: dict[str, str] = {}
        while not set(asked) <= set(states):
            message = self.client.get_shell_msg(timeout=60)
            states[message["parent_header"]["msg_id"]] = message["content"]["status"]
        while True:  # the last cell's output must not be taken for the next one's
            message = self.client.get_iopub_msg(timeout=10)
            idle = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
            if idle and message["parent_header"].get("msg_id") == asked[-1]:
                return [states[name] for name in asked]


@pytest.fixture(scope="module")
def bare_kernel() -> Iterator[LiveKernel]:
    """A kernel in which nothing is loaded."""
    with LiveKernel() as live:
        yield live


@pytest.fixture(scope="module")
def kernel() -> Iterator[LiveKernel]:
    """A kernel with the extension loaded and NumPy imported."""
    with LiveKernel("%load_ext tilelang_nb", "import numpy as np") as live:
        yield live
