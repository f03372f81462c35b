"""Fails on files that are too long, names that say nothing, left-over notes, and traces of one machine."""

import re

import tree

LINES_MAX = 400
VAGUE = "manager|helper|helpers|util|utils|common|impl|misc"
VAGUE_FILE = re.compile(rf"(^|_)({VAGUE})(_|\.)")
VAGUE_TYPE = re.compile(rf"\b(?:class|struct|namespace)\s+(?:\w+_)?({VAGUE})\b(?!\s*=)")
NOTE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE = re.compile(r"(?<![\w.])/(home|Users)/\w")

findings = []
for path in tree.files():
    if VAGUE_FILE.search(path.name):
        findings.append((path, 1, "the file's name says nothing; name its subject"))
    number = 0
    for number, line in tree.lines(path):
        if NOTE.search(line):
            findings.append((path, number, "left-over note: do it or write an issue"))
        if MACHINE.search(line):
            findings.append((path, number, "a path or host of one machine"))
        if path.suffix in {".hpp", ".cpp"} and VAGUE_TYPE.search(line):
            findings.append((path, number, "the type's name says nothing; name its subject"))
    if number > LINES_MAX:
        findings.append((path, number, f"longer than {LINES_MAX} lines: one subject a file"))
tree.report(findings)
