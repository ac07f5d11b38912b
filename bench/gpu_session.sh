#!/usr/bin/env bash
# Everything that a first hour on a machine with an NVIDIA GPU should tell, by one command, without a network: builds,
# checks, times, profiles, compares variants of the kernels, runs the tests. Each step is a process of its own under a
# time limit; what it finds is appended to results.jsonl as it comes, and what it prints is in logs/.
#
# Usage: bench/gpu_session.sh [--dry-run] [--out FOLDER] [--list] [--only STEP...] [--from STEP]
#   --dry-run   without a GPU: every step as far as it goes; the CPU stands in, and figures mean nothing
#   --out       for results.jsonl, summary.txt, all.log, GPU.md and what is built (default: build/gpu_session)
#   --list      the steps, with the most seconds that each takes
#   --only      these steps alone; --from: this one and those behind it. Later steps need `build`, in the same folder.
# PYTHON names the interpreter (default: python3), which needs pip, scikit-build-core, nanobind, CMake, Ninja and
# PyTorch (or CuPy). ARCHITECTURE names the GPU's for nvcc (default: this machine's, or 90). JOBS: processes of the
# tests. SLOWER: every limit is this many times as long.
# Exit status: 0 where every step passed, or told that a tool is missing; 1; 2 without a GPU.
set -uo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
STEPS=(machine build native memcheck synccheck racecheck initcheck check stress cold groups buckets rest others profile
  variants-build variants tests page)
declare -A LIMITS=([machine]=60 [build]=400 [native]=60 [memcheck]=60 [synccheck]=60 [racecheck]=60 [initcheck]=60
  [check]=240 [stress]=150 [cold]=200 [groups]=540 [buckets]=540 [rest]=240 [others]=300 [profile]=240
  [variants-build]=300 [variants]=240 [tests]=500 [page]=60)
MISSING=3 # a step's exit status: it needs a tool that is not here

usage() { sed -n '6,15s/^# \{0,1\}//p' "$0"; }

# ---- steps; each is called in a process of its own

# A program of CUDA's toolkit, on PATH or where it is installed.
tool() {
  command -v "$1" || find -L /usr/local/cuda/bin /opt/cuda/bin /opt/nvidia -name "$1" -type f \
    -executable 2>/dev/null | sort | tail -n 1 | grep . || {
    echo "MISSING: $1 is neither on PATH nor in CUDA's folders" >&2
    return $MISSING
  }
}

# Python with what was built. (The folder of a program comes first in its path; the checkout's arrcomp is not there.)
python() { (cd "$top" && PYTHONPATH=$out/site "$PYTHON" "$@"); }

built() {
  [ -d "$out/site/arrcomp" ] && return
  echo "nothing is built in $out: run the step build first" >&2
  return 1
}

step_machine() {
  nvidia-smi || [ -n "$dry" ] || return
  local nvcc
  nvcc=$(tool nvcc) && "$nvcc" --version || return
  "$PYTHON" --version
  "$PYTHON" -m pip list 2>/dev/null |
    grep -iE '^(torch|jax|cupy|numpy|ml.dtypes|nanobind|scikit.build|cmake|ninja|pytest|hypothesis|bitsandbytes|nvidia)'
  nproc
}

step_build() {
  local defines=(ARRCOMP_CUDA=ON ARRCOMP_CPU=AUTO ARRCOMP_GPU_PROGRAMS=ON CMAKE_CUDA_ARCHITECTURES="$ARCHITECTURE"
    CMAKE_CUDA_FLAGS=-lineinfo)
  (cd "$top" && "$PYTHON" -m pip install -v --no-build-isolation --no-deps --no-index --upgrade --target "$out/site" \
    -C build-dir="$out/build" "${defines[@]/#/-Ccmake.define.}" .) || return
  python bench/gpu_check.py --examples "$out/examples.txt"
  python -P -c 'import arrcomp; print(arrcomp.__version__, arrcomp.__file__)'
}

# A native program's path; in a dry run that of the one with the CPU in the GPU's place.
native() { echo "$out/build/gpu_programs/$1${dry:+_rehearsed}"; }

# In a dry run the real one too, which says that there is no GPU; and a fault, which must be found.
step_native() {
  built || return
  if [ -n "$dry" ]; then
    says_no_gpu gpu_check "$out/examples.txt" || return
    REHEARSED_FAULT=1 "$(native gpu_check)" "$out/examples.txt" Lossless && return 1
  fi
  "$(native gpu_check)" "$out/examples.txt"
}
says_no_gpu() {
  "$out/build/gpu_programs/$1" "${@:2}"
  [ $? = 2 ]
}

SANITIZED=("ErrorBounded 1e-3" "ErrorBounded rel 1e-3" "Lossless, bfloat16" BaseDelta "QSGD 4 bits"
  "QSGD 4 bits entropy" "SmaQ nearest" "FloatFormat nvfp4" S2FP8 "Codebook NF4")
sanitized() {
  built || return
  local checked=("$(native gpu_check)" "$out/examples.txt" "${@:2}" "${SANITIZED[@]}")
  [ -z "$dry" ] || "${checked[@]}" || return
  local program
  program=$(tool compute-sanitizer) || return
  "$program" --tool "$1" --error-exitcode 9 "${checked[@]}"
}
step_memcheck() { sanitized memcheck; }
step_synccheck() { sanitized synccheck; }
step_racecheck() { sanitized racecheck; }
step_initcheck() { sanitized initcheck --unfilled; }

checked() { built && python bench/gpu_check.py --results "$results" $dry "$@"; }
step_check() { checked --only 'codec *' --within 230; }
step_stress() { checked --only 'stress *' --within 140; }
step_cold() { checked --only 'cold *' --within 190; }

timed() { built && python bench/gpu.py --results "$results" $dry "$@"; }
step_groups() {
  timed --only machine --only 'case ErrorBounded*' --only 'case Lossless*' --only 'case BaseDelta*' --within 520
}
step_buckets() {
  timed --only 'case QSGD*' --only 'case SmaQ*' --only 'case FloatFormat*' --only 'case S2FP8*' \
    --only 'case Codebook*' --within 520
}
step_rest() { timed --only sums --only activations --only calls --only many --only graph --within 230; }
step_others() { timed --only 'other *' --within 290; }

# One launch of each kernel; clocks stay as they are.
step_profile() {
  built || return
  local mebibytes=256
  [ -z "$dry" ] || mebibytes=1
  local profiled=("$(native time_kernels)" "$out/examples.txt" --variant profiled --once --mib "$mebibytes"
    "ErrorBounded 1e-3" "ErrorBounded 1e-3 fast" Lossless "QSGD 4 bits" "FloatFormat fp8_e4m3")
  [ -z "$dry" ] || "${profiled[@]}" || return
  local program
  program=$(tool ncu) || return
  "$program" --force-overwrite --export "$out/profile" --clock-control none --set full --import-source yes \
    --kernel-name 'regex:encode|decode' "${profiled[@]}" || {
    echo "the profiler failed: it may lack the permission to read counters" >&2
    return 1
  }
  [ -n "$dry" ] && return
  "$program" --import "$out/profile.ncu-rep" --csv --page details >"$out/profile.csv" &&
    "$program" --import "$out/profile.ncu-rep" --csv --page raw >"$out/profile_raw.csv" &&
    python bench/gpu_profile.py "$out/profile.csv" "$out/profile_raw.csv" --results "$results"
}

step_variants-build() {
  built || return
  local cmake
  cmake=$(sed -n 's/^CMAKE_COMMAND:INTERNAL=//p' "$out/build/CMakeCache.txt") # the build's, which may be on no path
  "$cmake" --build "$out/build" --target gpu_variants
}

step_variants() {
  built || return
  local program label failed=0 mebibytes=16,256
  [ -z "$dry" ] || mebibytes=1
  for program in "$out"/build/gpu_programs/time_*; do
    [[ $program == *_rehearsed ]] && continue
    label=$(basename "$program")
    label=${label#time_}
    [ "$label" = kernels ] && label="as built"
    if [ -n "$dry" ]; then
      says_no_gpu "$(basename "$program")" "$out/examples.txt" Lossless || failed=1
      program=$(native time_kernels)
    fi
    timeout 60 "$program" "$out/examples.txt" --variant "${label//_/ }" --results "$results" --mib "$mebibytes" \
      "ErrorBounded 1e-3" "ErrorBounded 1e-3 fast" Lossless || failed=1
  done
  return $failed
}

step_tests() {
  built || return
  local where=(--device cuda -v)
  [ -n "$dry" ] && where=(--collect-only -q)
  (cd "$top" && XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONPATH=$out/site "$PYTHON" -P -m pytest -p no:cacheprovider \
    -n "${JOBS:-8}" --maxfail 60 "${where[@]}" tests/arrays tests/api tests/codecs tests/format tests/torch tests/jax \
    tests/cupy tests/activations)
}

step_page() { python bench/gpu_page.py "$results" --output "$out"; }

# ---- what runs them

record() {
  printf '{"kind": "step", "step": "%s", "status": "%s", "seconds": %d%s}\n' \
    "$1" "$2" "$3" "${dry:+, \"rehearsed\": true}" >>"$results"
  printf '%-15s %-12s %5d s\n' "$1" "$2" "$3" | tee -a "$out/steps.txt"
}

status_text() {
  case $1 in
    0) echo passed ;;
    124 | 137) echo "out of time" ;;
    "$MISSING") echo "tool missing" ;;
    *) echo "failed ($1)" ;;
  esac
}

# Also where the session itself is ended.
summarize() {
  trap - EXIT
  [ -n "${out:-}" ] || return
  cat "$out/steps.txt" >"$out/summary.txt" 2>/dev/null || return
  "$PYTHON" "$top/bench/gpu_page.py" "$results" --print >>"$out/summary.txt" 2>&1
  for log in "$out"/logs/*.log; do
    [ -e "$log" ] && echo "==== $log" && tail -c 200000 "$log"
  done >"$out/all.log"
}

run_step() {
  local step=$1 start=$SECONDS status=0
  timeout --kill-after=10 $((LIMITS[$step] * SLOWER)) bash "$top/bench/gpu_session.sh" --step "$step" --out "$out" \
    ${dry:+--dry-run} >"$out/logs/$step.log" 2>&1 || status=$?
  record "$step" "$(status_text $status)" $((SECONDS - start))
  [ $status = 0 ] && return
  tail -n 15 "$out/logs/$step.log" | sed 's/^/    /'
  [ $status = "$MISSING" ]
}

chosen_steps() {
  local step found=
  for step in "${STEPS[@]}"; do
    [ "$step" = "$from" ] && found=1
    if [ ${#only[@]} -gt 0 ]; then
      [[ " ${only[*]} " == *" $step "* ]] && echo "$step"
    elif [ -z "$from" ] || [ -n "$found" ]; then
      echo "$step"
    fi
  done
}

check_names() {
  local name
  for name in "$@"; do
    [ -n "${LIMITS[$name]:-}" ] || { echo "no step is named $name; --list shows them" >&2; exit 1; }
  done
}

parse() {
  while [ $# -gt 0 ]; do
    case $1 in
      --dry-run) dry=--rehearse ;;
      --out) out=${2:?--out: a folder is needed} && shift ;;
      --from) from=${2:?--from: a step is needed} && shift ;;
      --step) inner=${2:?} && shift ;;
      --only)
        while [ $# -gt 1 ] && [[ $2 != --* ]]; do only+=("$2") && shift; done
        [ ${#only[@]} -gt 0 ] || { echo "--only: a step is needed" >&2; exit 1; } ;;
      --list)
        for step in "${STEPS[@]}"; do echo "$step ${LIMITS[$step]}"; done
        exit 0 ;;
      -h | --help) usage && exit 0 ;;
      *) echo "unknown option: $1" >&2 && usage >&2 && exit 1 ;;
    esac
    shift
  done
}

main() {
  parse "$@"
  check_names ${from:+"$from"} ${inner:+"$inner"} "${only[@]}"
  mkdir -p "$out/logs" && out=$(cd "$out" && pwd) || exit 1
  results=$out/results.jsonl
  if [ -z "${ARCHITECTURE:-}" ]; then
    ARCHITECTURE=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
    ARCHITECTURE=${ARCHITECTURE:-90}-real
  fi
  if [ -n "$inner" ]; then
    "step_$inner"
    exit
  fi
  if [ -z "$dry" ] && ! nvidia-smi >/dev/null 2>&1; then
    echo "No GPU: nvidia-smi finds none. --dry-run goes as far as it can without." >&2
    exit 2
  fi
  trap summarize EXIT
  trap 'exit 1' INT TERM
  local step failed=0
  while read -r step; do
    run_step "$step" </dev/null || failed=1
  done < <(chosen_steps)
  summarize
  cat "$out/summary.txt"
  exit $failed
}

dry= out=$top/build/gpu_session from= inner= only=() PYTHON=${PYTHON:-python3} SLOWER=${SLOWER:-1}
main "$@"; exit # in one line: this file may change while it runs
