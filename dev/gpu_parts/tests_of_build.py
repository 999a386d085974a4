"""Lists the tests of a build, so that they can run on a machine without ctest."""

import json
import re
import subprocess

from machine import UserError

# Other tests of cuda_tests need no GPU.
ON_THE_GPU = r"cuda_tests\.libraries|core_tests\.cuda(_unfused)?|ops_tests\.cuda|contract_tests_cuda(_[a-z0-9]+)*"


def gpu_tests(build, pattern=None):
    """Returns names, commands and variables of the tests, with the paths of this build."""
    done = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(f"ctest finds no tests in {build}: {done.stderr.strip() or done.stdout.strip()}")
    found = []
    for test in json.loads(done.stdout)["tests"]:
        if not re.fullmatch(pattern or ON_THE_GPU, test["name"]):
            continue
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        found.append({"name": test["name"], "command": test.get("command", []),
                      "variables": dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))})
    return found


def moved(test, manifest, build, source):
    """Returns the test with paths changed for another location of build and tree."""
    def move(word):
        for there, here in ((manifest["build"], build), (manifest["source"], source)):
            if word == there or word.startswith(there + "/"):
                return str(here) + word[len(there):]
        return word
    return {**test, "command": [move(word) for word in test["command"]]}
