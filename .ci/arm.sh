#!/usr/bin/env bash
# Builds the extension for 64-bit Arm with a cross compiler and runs, under an emulator, what tests arithmetic and
# bytes: every operation of the lanes, golden streams, codecs on all instruction sets. Of speed it says nothing.
#
# Usage: arm.sh FOLDER [pytest arguments]
# FOLDER keeps what is downloaded and built, a few hundred megabytes, for the next time.
# Needs Debian or Ubuntu with g++-aarch64-linux-gnu and qemu-user-static; nothing is installed. PYTHON: an interpreter
# of the distribution's Python version that has the extra `dev`; by default python3.
set -euo pipefail

python=$(command -v "${PYTHON:-python3}")
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${1:?a folder}"
folder=$(cd "$1" && pwd)
shift
version=$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
root=$folder/sysroot
compiler=aarch64-linux-gnu-g++
emulator=$(command -v qemu-aarch64-static)

# Python for Arm, out of the distribution's packages: as if for a machine on which none is installed.
unpack_python() {
  mkdir -p "$folder"/apt/{state/lists,cache/archives}/partial "$root"
  : >"$folder/apt/status"
  local apt=(apt-get -q -o Dir::State="$folder/apt/state" -o Dir::State::status="$folder/apt/status"
    -o Dir::Cache="$folder/apt/cache" -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Debug::NoLocking=1)
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends --download-only \
    "libpython$version-dev" "python$version-minimal" libstdc++6
  for package in "$folder"/apt/cache/archives/*.deb; do dpkg -x "$package" "$root"; done
}

install_libraries() {
  local platforms=(--platform={manylinux2014,manylinux_2_27,manylinux_2_28}_aarch64)
  "$python" -m pip install -q -c "$top/.ci/constraints.txt" --target "$folder/libraries" --only-binary=:all: \
    --implementation cp --python-version "$version" "${platforms[@]}" \
    numpy ml_dtypes xxhash zstandard pytest hypothesis rich typer
}

write_toolchain() {
  cat >"$folder/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER $compiler)
set(CMAKE_CXX_FLAGS_INIT -I$root/usr/include)
set(Python_INCLUDE_DIR $root/usr/include/python$version)
END
}

build_extension() {
  rm -rf "$folder/package"
  CMAKE_TOOLCHAIN_FILE=$folder/toolchain.cmake SETUPTOOLS_EXT_SUFFIX=.cpython-${version/./}-aarch64-linux-gnu.so \
    "$python" -m pip install -q --no-build-isolation --no-deps --target "$folder/package" -C build-dir="$folder/build" \
    -C cmake.define.ARRCOMP_CUDA=OFF -C cmake.define.ARRCOMP_WERROR=ON "$top"
}

test_lanes() {
  "$compiler" -std=c++20 -Wall -Wextra -Werror -static -O2 -ffp-contract=off -I"$top/native" -DLANES_TEST_ISA=neon \
    "$top/tests/native/lanes_test.cpp" -o "$folder/lanes_test"
  "$emulator" "$folder/lanes_test"
}

test_on() { # test_on INSTRUCTION_SET [pytest arguments]
  echo "+ tests on $1"
  ARRCOMP_INSTRUCTION_SET=$1 QEMU_LD_PREFIX=$root PYTHONPATH=$folder/package:$folder/libraries \
    "$emulator" "$root/usr/bin/python$version" -P -m pytest -q -p no:cacheprovider "${@:2}"
}

[ -x "$root/usr/bin/python$version" ] || unpack_python
[ -d "$folder/libraries" ] || install_libraries
write_toolchain
test_lanes
build_extension
cd "$top"
[ $# -gt 0 ] || set -- -m "arm and not slow" $(.ci/marked.sh arm)
test_on neon "$@"
test_on plain tests/format/test_golden.py
