#!/usr/bin/env bash
# Fuzzes the decoders of the CPU from the inputs in tests/fuzz/corpus, and Python's and C's readers of headers from small
# streams: libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer. What breaks one is left in the folder that is
# told.
#
# Usage: fuzz.sh [SECONDS [CODEC...]]    SECONDS in all, 60 by default; CODEC: a codec's name, "header" (Python's reader) or
#   "stream" (that of the C library)
# PYTHON: an interpreter that has arrcomp, for "header"; by default python3.
# Ends with 69 where there is no Clang with libFuzzer.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$top/build/fuzz
python=${PYTHON:-python3}
table=$top/native/stream/codec_table.h
mapfile -t codecs < <(sed -nE 's/^ *X\(([0-9]+), \w+, \w+, "([a-z0-9-]+)"\).*/\1 \2/p' "$table" | sort -n)
names=("${codecs[@]#* }")
[ ${#names[@]} -gt 0 ] || { echo "error: $table: expected lines of codecs, got none" >&2; exit 1; }
seconds=${1:-60}
chosen=("${@:2}")
[ ${#chosen[@]} -gt 0 ] || chosen=("${names[@]}" header stream)

has_fuzzer() {
  clang++ -x c++ -fsanitize=fuzzer,address,undefined - -o /dev/null 2>/dev/null \
    <<<'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
}

# The id of a codec; 0 for the readers of headers.
id_of() {
  local codec
  for codec in "${codecs[@]}" "0 header" "0 stream"; do
    if [ "${codec#* }" = "$1" ]; then
      echo "${codec%% *}"
      return
    fi
  done
  return 1
}

for name in "${chosen[@]}"; do
  id_of "$name" >/dev/null ||
    { echo "error: CODEC: expected one of ${names[*]} header stream, got '$name'" >&2; exit 2; }
done

# Debian has the fuzzer and the sanitizers in a package of their own, whose name has the compiler's version.
install_fuzzer() {
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends clang
  apt-get install -y -qq --no-install-recommends "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev"
}

if ! has_fuzzer && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  install_fuzzer >/dev/null 2>&1 || true
fi
if ! has_fuzzer; then
  echo "error: no clang++ with libFuzzer and its sanitizers: on Debian these are in clang and libclang-rt-VERSION-dev" >&2
  exit 69
fi

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S "$top" -B "$build" -DCMAKE_CXX_COMPILER=clang++ -DARRCOMP_FUZZ=ON -DARRCOMP_WERROR=ON "${launcher[@]}" >/dev/null
targets=()
for name in "${chosen[@]}"; do
  case $name in
  header) ;;
  stream) targets+=(arrcomp_fuzz_stream) ;;
  *) targets+=(arrcomp_fuzz) ;;
  esac
done
[ ${#targets[@]} = 0 ] || cmake --build "$build" -j "$(nproc)" --target "${targets[@]}"

work=$(mktemp -d)
status=0
for name in "${chosen[@]}"; do
  share=$((seconds / ${#chosen[@]} > 0 ? seconds / ${#chosen[@]} : 1))
  if [ "$name" = header ]; then
    "$python" -P "$top/tests/fuzz/header.py" --seconds "$share" || status=1
    continue
  fi
  mkdir -p "$work/$name/kept" "$work/$name/new"
  program=$build/arrcomp_fuzz
  if [ "$name" = stream ]; then
    program=$build/arrcomp_fuzz_stream
    find "$top/tests/golden" -name '*.arrcomp' -size -8 -exec cp -t "$work/$name/kept" {} +
  else
    "$python" -m zipfile -e "$top/tests/fuzz/corpus/$name.zip" "$work/$name/kept"
  fi
  printf '%s: ' "$name"
  if ASAN_OPTIONS=detect_leaks=0 ARRCOMP_FUZZ_CODEC=$(id_of "$name") "$program" \
    -max_total_time="$share" -max_len=4096 -timeout=30 -rss_limit_mb=2048 -malloc_limit_mb=256 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="$work/$name/" \
    "$work/$name/new" "$work/$name/kept" 2>"$work/$name/log"; then
    echo "$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name/log") executions, nothing found"
  else
    status=1
    cat "$work/$name/log"
    echo "error: $name: what was decoded is in $work/$name" >&2
  fi
done
[ $status != 0 ] || rm -rf "$work"
exit $status
