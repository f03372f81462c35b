"""Fails when a folder includes one that it may not. The table is the architecture."""

import re

import tree

BELOW_SDK = {"schemas", "state", "placement", "checkpoint", "backends", "actors"}
EVERYTHING = BELOW_SDK | {"sdk", "sdk/embed", "sdk/client", "sdk/front", "sdk/cli", "bench", "tests"}
ALLOWED = {
    "schemas": {"schemas"},
    "state": {"state", "schemas"},
    "placement": {"placement", "state"},
    "checkpoint": {"checkpoint", "state", "schemas"},
    "backends": {"backends", "state", "schemas"},
    "actors": BELOW_SDK,
    "sdk/embed": BELOW_SDK | {"sdk/embed", "sdk/front"},
    "sdk/front": BELOW_SDK | {"sdk/front", "sdk/embed"},
    "sdk/client": {"sdk/client", "schemas"},
    "sdk/python": {"sdk/python", "schemas"},
    "sdk/cli": BELOW_SDK | {"sdk/cli", "sdk/client", "sdk/embed", "sdk/front"},
    "bench": EVERYTHING - {"tests"},
    "tests": EVERYTHING,
}


def folder_of(parts):
    two = "/".join(parts[:2])
    return two if two in ALLOWED else parts[0]


findings = []
for path in tree.files({".hpp", ".cpp", ".h", ".c"}):
    folder = folder_of(path.relative_to(tree.root()).parts)
    for number, line in tree.lines(path):
        match = re.match(r'\s*#\s*include\s+"([a-z_/0-9]+)/[^"/]+"', line)
        if not match:
            continue
        target = folder_of(match[1].split("/"))
        if target.split("/")[0] in tree.FOLDERS and target not in ALLOWED[folder]:
            findings.append((path, number, f"{folder} may not include {target}"))
tree.report(findings)
