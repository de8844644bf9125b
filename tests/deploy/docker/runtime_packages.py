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


def package_of(library):
    """dpkg knows a file by one of its two names under a merged /usr."""
    path = os.path.realpath(library)
    for name in (path, path.removeprefix("/usr"), "/usr" + path):
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    sys.exit(f"{library} belongs to no Debian package; expected system libraries to; install Debian's package of it")


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
    for library, program in needed.items():
        packages.setdefault(package_of(library), f"{os.path.basename(library)}, which {program} opens")
    complaints = [f"{name} is not in the list but holds {why}: add it" for name, why in sorted(packages.items())
                  if name not in listed]
    complaints += [f"{name} is in the list, but no program opens a library of it: remove it"
                   for name in sorted(listed - set(packages))]
    for complaint in complaints:
        print(f"{listed_in}: {complaint}")
    print(f"{len(programs)} programs, {len(needed)} libraries of the system, {len(packages)} packages")
    sys.exit(bool(complaints))


main(*sys.argv[1:])
