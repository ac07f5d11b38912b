#!/usr/bin/env bash
# The CPU's codecs are compiled for each instruction set and chosen at run time. An inline function that is emitted in one
# of these objects could be the copy that the linker keeps for all of them, and would then stop older processors. So an
# object may define weak symbols in the namespace of its own instruction set only. (On Arm there is nothing to check:
# every processor of 64 bits has NEON.)
#
# Usage: check_instruction_sets.sh BUILD_FOLDER
set -euo pipefail

status=0
for isa in avx2 avx512; do
  objects=0
  while read -r object; do
    objects=$((objects + 1))
    weak=$(nm -C --defined-only "$object" | grep -E '^[0-9a-f]* [WVu] ' || true)
    foreign=$(grep -vE "arrcomp::$isa::|DW\.ref\.|^$" <<<"$weak" || true)
    if [ -n "$foreign" ]; then
      printf 'error: %s defines what other instruction sets may link to:\n%s\n' "$object" "$foreign" >&2
      status=1
    fi
  done < <(find "$1" -name "${isa}_*.cpp.o")
  if [ "$objects" -eq 0 ]; then
    printf 'error: %s: expected objects of %s, got none\n' "$1" "$isa" >&2
    status=1
  fi
done
exit $status
