#!/usr/bin/env bash
# Compiles what knows of the operating system for macOS and Windows: how work is spread over threads, the C library and,
# for macOS, the filter of HDF5. Nothing is linked, and nothing runs. Codecs differ by instruction set alone: the other
# builds have them.
#
# Usage: other_systems.sh FOLDER
# FOLDER keeps a compiler with the headers of these systems, which pip installs, and objects.
# Needs cmake and ninja. PYTHON: an interpreter with pip; by default python3.
set -euo pipefail

python=$(command -v "${PYTHON:-python3}")
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${1:?a folder}"
folder=$(cd "$1" && pwd)
export ZIG_GLOBAL_CACHE_DIR=$folder/cache ZIG_LOCAL_CACHE_DIR=$folder/cache

# It never links, not even for CMake's questions: the C++ library would have to be compiled for it first.
write_compiler() { # write_compiler TARGET
  cat >"$folder/$1-c++" <<END
#!/bin/sh
case " \$* " in *" -c "*) ;; *) set -- -c "\$@" ;; esac
exec "$python" -m ziglang c++ -target $1 "\$@"
END
  chmod +x "$folder/$1-c++"
}

compile_for() { # compile_for SYSTEM TARGET [CMake arguments]
  local system=$1 target=$2 objects
  echo "+ $target"
  write_compiler "$target"
  cmake -S "$top" -B "$folder/$target" -G Ninja -DCMAKE_SYSTEM_NAME="$system" -DCMAKE_SYSTEM_PROCESSOR="${target%%-*}" \
    -DCMAKE_CXX_COMPILER="$folder/$target-c++" -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
    -DCMAKE_CXX_FLAGS_RELEASE="-O0 -fno-sanitize=undefined" -DARRCOMP_C=ON -DARRCOMP_WERROR=ON "${@:3}" >/dev/null
  mapfile -t objects < <(ninja -C "$folder/$target" -t targets all | sed -n 's/: CXX_COMPILER__.*//p' | grep -v generated)
  [ ${#objects[@]} -gt 20 ] || { echo "error: $target: expected more than 20 sources, got ${#objects[@]}" >&2; exit 1; }
  ninja -C "$folder/$target" "${objects[@]}"
}

[ -d "$folder/compiler" ] ||
  "$python" -m pip install -q -c "$top/.ci/constraints.txt" --target "$folder/compiler" ziglang
export PYTHONPATH=$folder/compiler
compile_for Darwin aarch64-macos -DARRCOMP_HDF5=ON
compile_for Windows x86_64-windows-gnu
