"""A real browser without a window, spoken to over its own pipe: no package of Python is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
         "google-chrome-stable")


def found():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """One page, and all that it said or asked for since it was opened."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.said, self.requests, self.loaded = [], [], False

    def call(self, method, **params):
        return self.browser.call(method, params, self.session)

    def hear(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.said.append(f"{params['type']}: {params['args']}")
        elif method == "Runtime.exceptionThrown":
            self.said.append(params["exceptionDetails"]["text"])
        elif method == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, url):
        for domain in ("Network", "Runtime", "Log", "Page"):
            self.call(domain + ".enable")
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self.browser.hear()

    def show(self, width, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=844,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def ask(self, expression):
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"]["exception"]["description"])
        return told["result"].get("value")

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def picture(self, width, height=3000):
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        told = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(told["data"])


class Browser:
    def __init__(self, program):
        self.profile = tempfile.mkdtemp()
        to_read, self.to_write = os.pipe()
        self.to_hear, to_say = os.pipe()

        def place_pipes():  # the browser reads from 3 and answers on 4
            os.dup2(to_read, 10), os.dup2(to_say, 11)
            os.dup2(10, 3), os.dup2(11, 4)
            os.set_inheritable(3, True), os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--disable-dev-shm-usage", "--user-data-dir=" + self.profile, "--hide-scrollbars",
             "--disable-background-networking", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=place_pipes)
        os.close(to_read), os.close(to_say)
        self.last, self.rest, self.answers, self.pages = 0, b"", {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def hear(self, seconds=120):
        while b"\0" not in self.rest:
            if not select.select([self.to_hear], [], [], seconds)[0]:
                raise RuntimeError(f"the browser said nothing for {seconds} s")
            more = os.read(self.to_hear, 1 << 20)
            if not more:
                raise RuntimeError("the browser has gone")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        told = json.loads(text)
        if "id" in told:
            self.answers[told["id"]] = told
        elif told.get("sessionId") in self.pages:
            self.pages[told["sessionId"]].hear(told["method"], told["params"])

    def call(self, method, params=None, session=None):
        self.last += 1
        asked = {"id": self.last, "method": method, "params": params or {}}
        if session:
            asked["sessionId"] = session
        os.write(self.to_write, json.dumps(asked).encode() + b"\0")
        while self.last not in self.answers:
            self.hear()
        told = self.answers.pop(self.last)
        if "error" in told:
            raise RuntimeError(f"{method}: {told['error']}")
        return told["result"]

    def open(self, path):
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self.pages[session] = Page(self, session)
        page.target = target
        page.open("file://" + str(path))
        return page

    def close(self, page):
        del self.pages[page.session]
        self.call("Target.closeTarget", {"targetId": page.target})
