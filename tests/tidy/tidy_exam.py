"""Fails when docs/exam.md names a test that no file of tests/ has: the exam would promise what nobody checks."""

import re

import tree

exam = tree.root() / "docs/exam.md"
cases = set()
for path in tree.files({".cpp"}):
    if path.relative_to(tree.root()).parts[0] == "tests":
        cases |= set(re.findall(r"TEST_CASE\(\s*(\w+)", path.read_text()))
findings = []
for number, line in tree.lines(exam):
    for name in re.findall(r"`(?:\w+/)?(\w+)`", line):
        if name.count("_") >= 3 and name not in cases:
            findings.append((exam, number, f"no test is named {name}"))
tree.report(findings)
