#!/usr/bin/env python3
"""Makes libraries to link with in place of glibc's, so that the result runs on an older glibc.  stubs.py VERSION FOLDER CC

They have the symbols of this machine's glibc, each with the newest of its versions that glibc VERSION has, and no code.
Symbols without such a version are missing. The linker searches FOLDER first if it gets -L FOLDER."""

import re
import subprocess
import sys

# Libraries of glibc before 2.34, by the names that the linker searches. libpthread, libdl and librt are part of libc since
# 2.34. They stay in the list because their functions must be loaded where libc does not have them.
LIBRARIES = {"c": "libc.so.6", "m": "libm.so.6", "pthread": "libpthread.so.0", "dl": "libdl.so.2", "rt": "librt.so.1"}
LOADER = re.compile(r"^ld-linux.*\.so\.\d+$")
DIRECTIVES = {"FUNC": "function", "IFUNC": "function", "OBJECT": "object", "TLS": "tls_object"}


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def symbols_of(path, limit):
    """Returns {name: (version, type, size)} of the symbols that glibc `limit` has."""
    found = {}
    for line in output_of("readelf", "--dyn-syms", "--wide", path).splitlines():
        match = re.match(r"\s*\d+: [0-9a-f]+ +(\S+) (\w+) +\w+ +\w+ +(\w+) (\w+)@+GLIBC_([\d.]+)$", line)
        if match is None or match[3] == "UND" or match[2] not in DIRECTIVES or numbers(match[5]) > limit:
            continue
        size, kind, _, name, version = match.groups()
        if name not in found or numbers(found[name][0]) < numbers(version):
            found[name] = (version, kind, int(size, 0))
    return found


def source_of(symbols):
    lines = []
    for name, (_, kind, size) in sorted(symbols.items()):
        section = {"OBJECT": ".bss", "TLS": ".section .tbss,\"awT\",@nobits"}.get(kind, ".text")
        lines += [section, f".globl {name}", f".type {name}, @{DIRECTIVES[kind]}", f".size {name}, {size}", f"{name}:",
                  f".skip {max(size, 1) if kind in ('OBJECT', 'TLS') else 1}"]
    return "\n".join(lines + [".section .note.GNU-stack,\"\",@progbits", ""])


def map_of(symbols):
    versions = {}
    for name, (version, _, _) in sorted(symbols.items()):
        versions.setdefault(version, []).append(name)
    return "".join(f"GLIBC_{version} {{ global: {'; '.join(names)}; }};\n" for version, names in sorted(versions.items()))


def make(path, soname, symbols, compiler):
    with open(path + ".s", "w") as file:
        file.write(source_of(symbols))
    with open(path + ".map", "w") as file:
        file.write(map_of(symbols))
    versions = [f"-Wl,--version-script={path}.map"] if symbols else []
    subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{soname}", *versions, "-o", path, path + ".s"], check=True)


def main(version, folder, compiler):
    limit = numbers(version)
    libc = output_of(compiler, "-print-file-name=" + LIBRARIES["c"])
    needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "--dynamic", libc))
    loader = next(name for name in needed if LOADER.match(name))
    for name, soname in LIBRARIES.items():
        path = output_of(compiler, "-print-file-name=" + soname)
        stub = f"{folder}/{soname}" if name == "c" else f"{folder}/lib{name}.so"
        make(stub, soname, symbols_of(path, limit), compiler)
    make(f"{folder}/{loader}", loader, symbols_of(output_of(compiler, "-print-file-name=" + loader), limit), compiler)
    with open(f"{folder}/libc.so", "w") as file:
        static = output_of(compiler, "-print-file-name=libc_nonshared.a")
        file.write(f"GROUP ( {folder}/{LIBRARIES['c']} {static} AS_NEEDED ( {folder}/{loader} ) )\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
