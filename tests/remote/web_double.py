"""A web server for tests, of the standard library alone: ranges, ETags, and the faults of real ones.

    python3 web_double.py FOLDER [FAULT...]      prints the port, then serves FOLDER on 127.0.0.1

A FAULT is NAME or NAME=VALUE:
    cut=N           every N-th answer to a range ends in its middle
    busy=N          every N-th answer is 503
    limited         every third answer is 429 with Retry-After
    failing         every answer to a range is 500
    denied          every answer is 403
    stall=S         the second range of a file comes after S seconds
    no-ranges       the server ignores Range
    wrong-range     another range than the one asked for
    long            more bytes than Content-Range says
    wrong-total     Content-Range names another length of the file from the second range on
    changing        the ETag of a file is another one from its second range on
    circle          every path leads to itself
    slow=MS         milliseconds before every answer
    hub             the paths of the Hugging Face hub: /api/models/O/R/..., /O/R/resolve/COMMIT/PATH
    expiring=N      a blob of the hub is given N times under the URL that the hub led to, then 403
    token=T         401 without "Authorization: Bearer T"; a blob answers 400 with it
    missing-is-403  403 where there is no such file, as S3 says it
"""

import collections
import hashlib
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FOLDER = os.path.abspath(sys.argv[1])
FAULTS = dict((word.split("=", 1) + [""])[:2] for word in sys.argv[2:])
LOCK = threading.Lock()
COUNTS = collections.Counter()


def every(name, usual):
    """True at each N-th question."""
    if name not in FAULTS:
        return False
    with LOCK:
        COUNTS[name] += 1
        return COUNTS[name] % int(FAULTS[name] or usual) == 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def log_message(self, *words):
        pass

    def say(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        if "slow" in FAULTS:
            time.sleep(int(FAULTS["slow"]) / 1000)
        if "denied" in FAULTS:
            return self.say(403)
        if self.path == "/counts":
            return self.say(200, json.dumps(COUNTS).encode())
        is_blob = self.path.startswith("/blobs/")
        if is_blob and self.headers["Authorization"] is not None:
            return self.say(400)
        if not is_blob and FAULTS.get("token") and self.headers["Authorization"] != "Bearer " + FAULTS["token"]:
            return self.say(401)
        if every("busy", 3):
            return self.say(503)
        if every("limited", 3):
            return self.say(429, Retry_After="1")
        path = urllib.parse.unquote(self.path.split("?")[0])
        if "circle" in FAULTS:
            return self.say(302, Location=self.path)
        if "hub" in FAULTS:
            return self.hub(path)
        return self.file(path)

    def hub(self, path):
        words = path.strip("/").split("/")
        if path.startswith("/blobs/"):
            with LOCK:
                COUNTS[self.path] += 1
                is_expired = COUNTS[self.path] > int(FAULTS.get("expiring") or 1_000_000)
            return self.say(403) if is_expired else self.file(path[len("/blobs"):])
        if words[:2] == ["api", "models"] and len(words) >= 6 and words[4] == "revision":
            known = words[5] in ("main", COMMIT)
            return self.say(200, json.dumps({"sha": COMMIT}).encode()) if known else self.say(404)
        if words[:2] == ["api", "models"] and len(words) >= 6 and words[4] == "tree":
            return self.tree("/".join(words[6:]))
        if len(words) >= 5 and words[2] == "resolve" and words[3] == COMMIT:
            name = "/".join(words[4:])
            # As the hub leads to its store, on another host.
            port = self.server.server_address[1]
            with LOCK:
                COUNTS["resolve"] += 1
                signature = COUNTS["resolve"]
            return self.say(302, Location=f"http://localhost:{port}/blobs/{urllib.parse.quote(name)}"
                                          f"?sig={signature}")
        return self.say(404)

    def tree(self, below):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        is_deep = "recursive" in query
        if not os.path.isdir(os.path.join(FOLDER, below)):
            return self.say(404)
        entries = []
        for folder, folders, names in os.walk(os.path.join(FOLDER, below)):
            for name in sorted(folders):
                path = os.path.relpath(os.path.join(folder, name), FOLDER)
                entries.append({"type": "directory", "oid": "0" * 40, "size": 0, "path": path})
            if not is_deep:
                folders.clear()
            for name in sorted(names):
                path = os.path.join(folder, name)
                entries.append({"type": "file", "oid": "0" * 40, "size": os.path.getsize(path),
                                "path": os.path.relpath(path, FOLDER)})
        # Pages of three, so that small folders have several.
        begin = int(query.get("cursor", ["0"])[0])
        headers = {}
        if begin + 3 < len(entries):
            host = self.headers["Host"]
            page = self.path.split("?")[0]
            deep = "recursive=true&" if is_deep else ""
            headers["Link"] = f'<http://{host}{page}?{deep}cursor={begin + 3}>; rel="next"'
        return self.say(200, json.dumps(entries[begin:begin + 3]).encode(), **headers)

    def file(self, path):
        full = os.path.normpath(os.path.join(FOLDER, path.lstrip("/")))
        if not full.startswith(FOLDER) or not os.path.isfile(full):
            if os.path.isdir(full):
                return self.say(200, b"<html>a list</html>", Content_Type="text/html")
            return self.say(403 if "missing-is-403" in FAULTS else 404)
        with open(full, "rb") as file:
            data = file.read()
        with LOCK:
            COUNTS[full] += 1
            seen = COUNTS[full]
        etag = '"' + hashlib.md5(data).hexdigest() + '"'
        if "changing" in FAULTS and seen > 1:
            etag = '"another"'
        wanted = self.headers["Range"]
        if wanted is None or "no-ranges" in FAULTS:
            return self.say(200, data, ETag=etag)
        if "failing" in FAULTS:
            return self.say(500)
        if "stall" in FAULTS and seen == 2:
            time.sleep(float(FAULTS["stall"]))
        if self.headers["If-Match"] not in (None, etag):
            return self.say(412)
        return self.range(data, etag, wanted, seen)

    def range(self, data, etag, wanted, seen):
        first, last = wanted.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last), len(data) - 1)
        if first >= len(data):
            return self.say(416, Content_Range=f"bytes */{len(data)}")
        body = data[first:last + 1]
        total = len(data) + (1 if "wrong-total" in FAULTS and seen > 1 else 0)
        moved = 1 if "wrong-range" in FAULTS and first > 0 else 0
        where = f"bytes {first + moved}-{last + moved}/{total}"
        if "long" in FAULTS and first > 0:
            body += b"more"
        if every("cut", 3) and len(body) > 1:
            self.send_response(206)
            self.send_header("ETag", etag)
            self.send_header("Content-Range", where)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:len(body) // 2])
            self.wfile.flush()
            self.close_connection = True
            return None
        return self.say(206, body, ETag=etag, Content_Range=where)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *where):
        """A client that leaves is what some of the tests are about."""


server = Server(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
