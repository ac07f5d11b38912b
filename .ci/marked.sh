#!/usr/bin/env bash
# The test modules with a marker: `pytest -m` alone would import all others too, with their frameworks.
#
# Usage: pytest -m MARKER $(marked.sh MARKER)      in the tree
set -euo pipefail

grep -rlw --include='test_*.py' "pytest\.mark\.${1:?a marker}" tests | sort
