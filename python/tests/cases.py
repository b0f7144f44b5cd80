"""Fixtures of tests/data, and files made by hand.

Every fixture with a truth.safetensors says what the elements of its checkpoint are.
"""

import base64
import contextlib
import http.server
import json
import pathlib
import threading

import pytest

import shardwright as sw

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
HEALTHY = sorted(path.parent for path in DATA.glob("*/healthy*/truth.safetensors"))
GRID = DATA / "torch-2.14/healthy_grid/ckpt"


def truth_of(case):
    torch = pytest.importorskip("torch")
    from safetensors import safe_open
    with safe_open(case / "truth.safetensors", "pt") as file:
        return torch, {name: file.get_tensor(name) for name in file.keys()}


def write_safetensors(path, name, values):
    header = json.dumps({name: {"dtype": "F32", "shape": list(values.shape),
                                "data_offsets": [0, values.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + values.tobytes())


class Ranges(http.server.BaseHTTPRequestHandler):
    """Files of `server.folder` by ranges, for those who know `server.password`."""

    def do_GET(self):
        wanted = self.server.password
        if wanted and self.headers.get("Authorization") != (
                "Basic " + base64.b64encode(wanted.encode()).decode()):
            return self.send_error(401)
        path = self.server.folder / self.path.split("?")[0].lstrip("/")
        if not path.is_file():
            return self.send_error(404)
        whole, asked = path.read_bytes(), self.headers.get("Range")
        low, high = 0, len(whole) - 1
        if asked and self.command == "GET":
            first, last = asked.replace("bytes=", "").split("-")
            low, high = int(first), min(int(last or high), high)
        self.send_response(206 if asked and self.command == "GET" else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Accept-Ranges", "bytes")
        if asked and self.command == "GET":
            self.send_header("Content-Range", f"bytes {low}-{high}/{len(whole)}")
        self.send_header("Content-Length", str(high + 1 - low))
        self.end_headers()
        if self.command == "GET":
            self.server.sent += high + 1 - low
            self.wfile.write(whole[low:high + 1])

    do_HEAD = do_GET

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def served(folder, password=None):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ranges) as server:
        server.folder, server.password, server.sent = folder, password, 0
        server.at = f"127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def opened_by_http(path):
    try:
        return sw.open(path)
    except sw.ShardwrightError as error:
        if "libcurl" in str(error):
            pytest.skip("libcurl is not installed")
        raise
