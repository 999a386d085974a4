"""Opens a page in a headless Chromium, for the tests of pages."""

import os
import re
import shutil
import subprocess
import tempfile

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
REASON = "no Chromium is installed, so the page is not opened; install the package chromium"


def open_page(page, script=""):
    """Opens a copy of the page, to which `script` is appended. Returns its elements as the scripts have left them, and what was written to
    the console. A page that asks for anything from the network gets an error there."""
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "page.html")
        with open(copy, "w", encoding="utf-8") as file:
            file.write(page + f"<script>{script}</script>")
        done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={folder}/user",
                               "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", "--dump-dom", f"file://{copy}"],
                              capture_output=True, text=True, timeout=120)
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)
