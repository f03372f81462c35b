#!/usr/bin/env bash
# caf_tsan.sh FOLDER: CAF's core from Debian's source, built for ThreadSanitizer, in FOLDER/installed.
# Debian's own is not instrumented: every message between two actors would look like a race.
set -euo pipefail
mkdir -p "$1"
cd "$1"
[[ ! -e installed/lib/libcaf_core.so ]] || exit 0

# Lists of our own, as most machines have none of sources.
mkdir -p parts lists/partial
apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' |
  sort -u | sed 's/.*/deb-src & main/' >parts/source.list
own=(-o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$PWD/parts" -o "Dir::State::Lists=$PWD/lists"
  -o "APT::Sandbox::User=root")
apt-get "${own[@]}" update -q
apt-get "${own[@]}" source --download-only --tar-only \
  "$(dpkg-query -W -f '${source:Package}=${source:Version}' libcaf-dev)"
rm -rf source && mkdir source
tar -C source --strip-components=1 -xf ./*.orig.tar.gz
cmake -S source -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS="-fsanitize=thread -g1" \
  -DCMAKE_INSTALL_PREFIX="$PWD/installed" -DCAF_NO_IO=yes -DCAF_NO_OPENSSL=yes -DCAF_NO_OPENCL=yes -DCAF_NO_PYTHON=yes \
  -DCAF_NO_TOOLS=yes -DCAF_NO_EXAMPLES=yes -DCAF_NO_UNIT_TESTS=yes
cmake --build build --target install
