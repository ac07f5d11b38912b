#!/usr/bin/env bash
# Builds the C++ code with AddressSanitizer and UndefinedBehaviorSanitizer into a folder of its own and runs the tests
# given (by default those that feed hostile and extreme input) on it.
#
# Usage: sanitizers.sh [pytest arguments]
# PYTHON: an interpreter that has what the tests and the build need (extras `test` and `dev`); by default python3.
set -euo pipefail

python=$(command -v "${PYTHON:-python3}")
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m pip install -q --no-build-isolation --no-deps --target "$folder" \
  -C cmake.build-type=RelWithDebInfo -C cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -C cmake.define.ARRCOMP_CUDA=OFF \
  -C cmake.define.ARRCOMP_SANITIZE=address,undefined "$top"

# Python itself is not built with the sanitizers, so their run time comes first, and with it the C++ library, whose
# exceptions it watches.
compiler=${CXX:-c++}
preload=$("$compiler" -print-file-name=libasan.so):$("$compiler" -print-file-name=libstdc++.so.6)

cd "$top"
[ $# -gt 0 ] || set -- tests/test_corruption.py tests/test_corrupt_configurations.py tests/test_parts.py tests/test_lossless.py tests/test_bound.py \
  tests/test_qsgd.py tests/test_smaq.py tests/test_float_format.py tests/test_s2fp8.py tests/test_codebook.py \
  tests/test_base_delta.py tests/test_sums.py tests/test_many.py tests/test_activation_kernels.py
# Python keeps memory until it ends: leaks would be its own.
export PYTHONPATH=$folder PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
LD_PRELOAD=$preload "$python" -P -m pytest -q -n 2 -p no:cacheprovider "$@"
