"""A model hub on localhost: the part of the Hugging Face HTTP API that a download needs.

A real server on a real socket, so that the hub client, its retries and its checks run as they are. Faults can
be switched on, and every request is recorded.
"""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def commit_of(text: str) -> str:
    """Forty hex digits, as a commit has."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class FakeHub:
    """Serves repositories given as ``{path: content}``.

    Attributes:
        requests: (method, path, token) of everything that was asked.
        fault: ``None``, ``"500"``, ``"truncate"``, ``"stall"`` or ``"corrupt"``; the last three apply to
            files larger than 10 kB only.
        token: when set, requests without this bearer token get 401.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, dict[str, bytes]]] = {}
        self.branches: dict[str, dict[str, str]] = {}
        self.requests: list[tuple[str, str, str]] = []
        self.fault: str | None = None
        self.token: str | None = None
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(
        self, name: str, files: Path | dict[str, bytes], *, branch: str = "main", version: str = "1"
    ) -> str:
        """Publish a commit, make ``branch`` point to it, and return it."""
        if isinstance(files, Path):
            paths = [path for path in files.rglob("*") if path.is_file() and path.name != "expected.json"]
            files = {path.relative_to(files).as_posix(): path.read_bytes() for path in paths}
        commit = commit_of(name + version)
        self.repositories.setdefault(name, {})[commit] = files
        self.branches.setdefault(name, {})[branch] = commit
        return commit

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep quiet."""

    def _answer(self, *, body: bool) -> None:
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append((self.command, path, token))
        if self.hub.fault == "500":
            self._send(500, b'{"error": "Internal Server Error"}', {}, body)
            return
        if self.hub.token is not None and token != self.hub.token:
            self._send(401, b'{"error": "Invalid username or password."}', {}, body)
            return
        parts = path.strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        name = "/".join(parts[2:4] if api else parts[:2])
        rest = parts[4:] if api else parts[2:]
        revision = rest[1] if len(rest) > 1 else "main"
        commits = self.hub.repositories.get(name)
        if commits is None:
            headers = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
            self._send(404, b'{"error": "Repository not found"}', headers, body)
            return
        commit = revision if revision in commits else self.hub.branches[name].get(revision)
        if commit is None:
            headers = {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}
            self._send(404, b'{"error": "Invalid rev id"}', headers, body)
        elif api:
            self._send(200, json.dumps(_info(name, commit, commits[commit])).encode(), {}, body)
        else:
            self._file(commit, commits[commit].get("/".join(rest[2:])), body)

    def _file(self, commit: str, content: bytes | None, body: bool) -> None:
        if content is None:
            headers = {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"}
            self._send(404, b'{"error": "Entry not found"}', headers, body)
            return
        headers = {"X-Repo-Commit": commit, "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
        if body and len(content) > 10_000 and self.hub.fault == "stall":
            self._head(200, len(content), headers)
            self.wfile.write(content[:5000])
            self.wfile.flush()
            self.hub.released.wait(30)
            self.close_connection = True
            return
        if body and len(content) > 10_000 and self.hub.fault == "truncate":
            headers["Content-Length"] = str(len(content) // 2)
            self._send(200, content[: len(content) // 2], headers, body)
            return
        if body and len(content) > 10_000 and self.hub.fault == "corrupt":
            content = content[:-1] + bytes([content[-1] ^ 1])
        self._send(200, content, headers, body)

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(length), **headers}.items():
            self.send_header(key, value)
        self.end_headers()

    def _send(self, status: int, content: bytes, headers: dict[str, str], body: bool) -> None:
        self._head(status, len(content), {"Content-Type": "application/json", **headers})
        if body:
            self.wfile.write(content)


def _info(name: str, commit: str, files: dict[str, bytes]) -> dict[str, Any]:
    siblings: list[dict[str, Any]] = []
    for path, content in sorted(files.items()):
        entry: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": "0" * 40}
        if len(content) > 10_000:  # large files are kept apart, and announced with their sha256
            digest = hashlib.sha256(content).hexdigest()
            entry["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
        siblings.append(entry)
    return {
        "_id": "0" * 24,
        "id": name,
        "modelId": name,
        "sha": commit,
        "private": False,
        "siblings": siblings,
    }
