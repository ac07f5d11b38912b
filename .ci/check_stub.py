"""Compares arrcomp/_core.pyi with the extension module that is installed: functions, parameters, plain types.

Run it as `python -P .ci/check_stub.py`, so that the installed package is imported and not the tree.
"""

import ast
import re
import sys
from pathlib import Path

from arrcomp import _core

STUB = Path(__file__).resolve().parent.parent / "arrcomp" / "_core.pyi"
PLAIN = {"bool", "float", "int", "None", "str"}


def parameters_of(function):
    """Returns [(parameter, type)] and the returned type; a type that is not a plain one is "object"."""
    arguments = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    typed = [(a.arg, ast.unparse(a.annotation) if a.annotation else "object") for a in arguments]
    typed.append(("return", ast.unparse(function.returns)))
    return [(name, type_ if type_ in PLAIN else "object") for name, type_ in typed]


def functions_of(source):
    """Returns {name: parameters} of the functions that Python source text declares."""
    return {node.name: parameters_of(node) for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def built():
    """Returns {name: parameters} of the functions of the extension module."""
    functions = [value for name, value in vars(_core).items() if not name.startswith("_") and callable(value)]
    signatures = [signature for function in functions for signature, *_ in function.__nb_signature__]
    # How nanobind writes an array's type is not Python; it is compared as "object" anyway.
    return functions_of("\n".join(re.sub(r"ndarray\[[^\]]*\]", "object", s) + ": ..." for s in signatures))


def main():
    """Returns the exit status."""
    stub, module = functions_of(STUB.read_text()), built()
    for name in sorted(stub.keys() | module.keys()):
        if stub.get(name) != module.get(name):
            print(f"error: {name}: {STUB.name} has {stub.get(name)}, the module {module.get(name)}", file=sys.stderr)
    return int(stub != module)


if __name__ == "__main__":
    sys.exit(main())
