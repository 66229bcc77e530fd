#!/usr/bin/env python3
"""Tests that `tutti doctor --json` prints the same content as the text.  doctor_json_test.py TUTTI"""

import json
import subprocess
import sys

found = json.loads(subprocess.run([sys.argv[1], "doctor", "--json"], check=True, capture_output=True, text=True).stdout)
text = subprocess.run([sys.argv[1], "doctor"], check=True, capture_output=True, text=True).stdout
settings = {one["name"]: one for one in found["settings"]}
assert settings["TUTTI_LOG"]["nccl_name"] == "NCCL_DEBUG", settings["TUTTI_LOG"]
assert settings["TUTTI_LOG"]["default"] == "warn", settings["TUTTI_LOG"]
for name, setting in settings.items():
    assert f"  {name} = " in text and setting["description"] and setting["group"], name
for section in ("machine", "transports", "GPUs", "topology"):
    assert f"\n{section}\n" in text and found[section], section
assert found["error"] is None and found["version"] in text, found
assert all(len(line) <= 100 for line in text.splitlines() if line.startswith("      ")), "a description is too long"
