#!/usr/bin/env bash
# Puts a CUDA compiler into a folder, as files alone, and prints the path of its nvcc; once it is there, only that.
# Beside 13's nvcc is nvdisasm.
#
# Usage: cuda_compiler.sh 12|13 FOLDER
# 13 is installed by pip (PYTHON, an interpreter that has it; by default python3). 12's nvcc is not among Python's
# packages: on Debian it is taken out of the distribution's (1 GB is downloaded).
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=${1:?12 or 13}
mkdir -p "${2:?a folder}"
folder=$(cd "$2" && pwd)

# Where nvcc looks for libraries there is nothing: a wheel has no links.
from_pip() {
  "${PYTHON:-python3}" -m pip install -q -c "$top/.ci/constraints.txt" --target "$folder" \
    nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm nvidia-cuda-cccl nvidia-cuda-nvdisasm >&2
  ln -sfn lib "$folder/nvidia/cu13/lib64"
}

# Debian's release 13 has CUDA 12.4; lists and packages of it are the folder's own, whatever this machine's release.
download_from_debian() {
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
  [ -n "$mirror" ] || { echo "error: CUDA 12 comes from Debian's packages, and this machine has none" >&2; exit 69; }
  mkdir -p "$folder"/apt/{state/lists,cache/archives}/partial
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie non-free" >"$folder/apt/sources.list"
  local apt=(apt-get -q -o Dir::Etc::SourceList="$folder/apt/sources.list" -o Dir::Etc::SourceParts=-
    -o Dir::State="$folder/apt/state" -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User=root)
  "${apt[@]}" update >&2
  (cd "$folder/apt" && "${apt[@]}" download nvidia-cuda-toolkit nvidia-cuda-dev libnvvm4 >&2)
}

# Debian spreads a toolkit over /usr; nvcc finds the parts by a profile in the folder where it is.
from_debian() {
  local package system=$folder/apt/system
  download_from_debian
  mkdir -p "$system" "$folder"/{bin,lib64,nvvm/bin,nvvm/lib64}
  for package in "$folder"/apt/*.deb; do dpkg --extract "$package" "$system"; done
  cp -r "$system"/usr/bin/{ptxas,fatbinary,cudafe++,nvlink,cuobjdump} "$folder/bin"
  cp -r "$system"/usr/lib/nvidia-cuda-toolkit/bin/{nvcc,crt} "$folder/bin"
  cp "$system"/usr/lib/nvidia-cuda-toolkit/bin/cicc "$folder/nvvm/bin"
  cp -r "$system"/usr/lib/nvidia-cuda-toolkit/libdevice "$folder/nvvm"
  cp -a "$system"/usr/lib/x86_64-linux-gnu/libnvvm.so* "$folder/nvvm/lib64"
  cp "$system"/usr/lib/x86_64-linux-gnu/libcuda{rt_static,devrt}.a "$folder/lib64"
  cp -r "$system/usr/include" "$folder"
  cat >"$folder/bin/nvcc.profile" <<'PROFILE'
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64"
PROFILE
  rm -r "$folder/apt"
}

case $version in
  12) nvcc=$folder/bin/nvcc install=from_debian ;;
  13) nvcc=$folder/nvidia/cu13/bin/nvcc install=from_pip ;;
  *) echo "error: CUDA version: expected 12 or 13, got '$version'" >&2; exit 2 ;;
esac
[ -x "$nvcc" ] || "$install"
echo "$nvcc"
