"""Fails when README.md shows another example than the one that is compiled (sdk/embed/example.cpp)."""

import re
import sys

import tree

readme = (tree.root() / "README.md").read_text()
example = (tree.root() / "sdk/embed/example.cpp").read_text()
shown = re.search(r"```cpp\n(.*?)```", readme, re.S)
if not shown or shown[1].strip() != example.strip():
    print("README.md: the C++ example differs from sdk/embed/example.cpp, which CI compiles")
    sys.exit(1)
