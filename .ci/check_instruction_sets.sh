#!/usr/bin/env bash
# Each CPU machine is compiled with its own instruction set and chosen at run time. An inline function that is emitted
# in one of these objects could be the copy that the linker keeps for all of them, and would then stop older processors.
# So an object may define weak symbols in its own machine's namespace only. (On Arm there is nothing to check: every
# processor of 64 bits has NEON.)
#
# Usage: check_machines.sh BUILD_FOLDER
set -euo pipefail

status=0
for machine in avx2 avx512; do
  while read -r object; do
    weak=$(nm -C --defined-only "$object" | grep -E '^[0-9a-f]* [WVu] ' || true)
    foreign=$(grep -vE "arrcomp::$machine::|DW\.ref\.|^$" <<<"$weak" || true)
    if [ -n "$foreign" ]; then
      printf 'error: %s defines what other machines may link to:\n%s\n' "$object" "$foreign" >&2
      status=1
    fi
  done < <(find "$1" -name "$machine*.cpp.o")
done
exit $status
