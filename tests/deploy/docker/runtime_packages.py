"""docker/runtime-packages.txt names exactly the Debian packages whose libraries the installed programs open.

runtime_packages.py LIST BIN. A package too few: the image's server does not start. One too many: an attack surface
that nobody needs.
"""

import os
import pathlib
import re
import subprocess
import sys

PROGRAMS = ("aerie-server", "aerie-admin", "aerie-load", "aerie-inspect", "aerie-verify")


def packages_of(libraries):
    """{library: its package}. dpkg knows a file by one of its two names under a merged /usr."""
    asked = {}
    for library in libraries:
        path = os.path.realpath(library)
        asked |= {name: library for name in (path, path.removeprefix("/usr"), "/usr" + path)}
    # One call for all: it lists what it finds and fails because of the names that it does not know.
    found = subprocess.run(["dpkg-query", "-S", *asked], capture_output=True, text=True).stdout
    owners = {asked[name]: package for package, name in re.findall(r"^([^:,\n]+)[^\n]*: (/\S+)$", found, re.MULTILINE)}
    for library in set(libraries) - set(owners):
        sys.exit(f"{library} belongs to no Debian package; expected system libraries to; install Debian's package of it")
    return owners


def main(listed_in, folder):
    listed = {line for line in pathlib.Path(listed_in).read_text().splitlines() if not line.startswith("#")}
    needed = {}
    programs = [pathlib.Path(folder) / name for name in PROGRAMS if (pathlib.Path(folder) / name).exists()]
    if not programs:
        sys.exit(f"{folder} holds none of {', '.join(PROGRAMS)}; expected built programs; build first")
    for program in programs:
        listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"=> (/(?:usr/)?lib(?:64)?/\S+)", listing):
            needed.setdefault(library, program.name)
    packages = {}
    for library, package in packages_of(needed).items():
        packages.setdefault(package, f"{os.path.basename(library)}, which {needed[library]} opens")
    complaints = [f"{name} is not in the list but holds {why}: add it" for name, why in sorted(packages.items())
                  if name not in listed]
    complaints += [f"{name} is in the list, but no program opens a library of it: remove it"
                   for name in sorted(listed - set(packages))]
    for complaint in complaints:
        print(f"{listed_in}: {complaint}")
    print(f"{len(programs)} programs, {len(needed)} libraries of the system, {len(packages)} packages")
    sys.exit(bool(complaints))


main(*sys.argv[1:])
