"""What all tidy tests share: the files of the checkout that are ours, and how a finding is reported."""

import pathlib
import sys

FOLDERS = ("schemas", "state", "placement", "checkpoint", "backends", "actors", "sdk", "bench", "tests", "cmake")
CODE = {".hpp", ".cpp", ".h", ".c", ".S", ".capnp", ".py", ".cmake"}


def root():
    return pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()


def files(suffixes=CODE):
    base = root()
    found = [p for f in FOLDERS for p in (base / f).rglob("*") if p.is_file() and p.suffix in suffixes]
    return sorted(p for p in found if "__pycache__" not in p.parts)


def lines(path):
    return enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)


def report(findings):
    for path, number, text in findings:
        print(f"{path.relative_to(root())}:{number}: {text}")
    sys.exit(1 if findings else 0)
