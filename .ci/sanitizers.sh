#!/usr/bin/env bash
# Builds the C++ code with sanitizers into a folder of its own and runs the tests given on it. By default these are, with
# AddressSanitizer and UndefinedBehaviorSanitizer, the ordinary ones that feed hostile and extreme input; with
# ThreadSanitizer those of threads.
#
# Usage: sanitizers.sh [pytest arguments]
# PYTHON: an interpreter that has what the tests and the build need (extras `test` and `dev`); by default python3.
# SANITIZE: `address,undefined` (the default) or `thread`.
set -euo pipefail

sanitize=${SANITIZE:-address,undefined}
python=$(command -v "${PYTHON:-python3}")
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

case $sanitize in
  address,undefined)
    runtime=libasan.so
    marker=asan tests="asan and not slow and not full"
    options=(-n 2)
    wrapper=()
    # Python keeps memory until it ends: leaks would be its own.
    export PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
    ;;
  thread)
    runtime=libtsan.so
    marker=threads tests="threads and not no_tsan and not slow"
    options=(-p no:xdist)
    # The run time wants memory where it would be without randomized addresses.
    wrapper=(setarch -R)
    # Children of forks start threads here; a daemon that Python leaves in a call at its end never joins its threads;
    # a report makes any process, the tests' children too, end with 66.
    export TSAN_OPTIONS="die_after_fork=0 report_thread_leaks=0 exitcode=66"
    ;;
  *)
    echo "error: SANITIZE=$sanitize: address,undefined or thread" >&2
    exit 2
    ;;
esac

"$python" -m pip install -q --no-build-isolation --no-deps --target "$folder" -C build-dir="$folder/build" \
  -C cmake.build-type=RelWithDebInfo -C cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -C cmake.define.ARRCOMP_CUDA=OFF \
  -C cmake.define.ARRCOMP_SANITIZE="$sanitize" "$top"

# Python itself is not built with the sanitizers, so their run time comes first, and with it the C++ library, whose
# exceptions it watches.
compiler=${CXX:-c++}
preload=$("$compiler" -print-file-name="$runtime"):$("$compiler" -print-file-name=libstdc++.so.6)

cd "$top"
[ $# -gt 0 ] || set -- -m "$tests" $(.ci/marked.sh "$marker")
export PYTHONPATH=$folder
"${wrapper[@]}" env LD_PRELOAD="$preload" "$python" -P -m pytest -q "${options[@]}" -p no:cacheprovider "$@"
