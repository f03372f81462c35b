"""Fails when a public enum of state/ has no to_string in its header: whoever prints one would print a number."""

import re

import tree

findings = []
for path in tree.files({".hpp"}):
    if path.relative_to(tree.root()).parts[0] != "state":
        continue
    text = path.read_text()
    for number, line in tree.lines(path):
        match = re.match(r"enum class (\w+)", line)
        if match and f"to_string({match[1]} " not in text:
            findings.append((path, number, f"enum {match[1]} has no to_string"))
tree.report(findings)
