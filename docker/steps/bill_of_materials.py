"""Writes what an image is made of as CycloneDX JSON: Debian's packages, LibTorch's wheels, every shared library.

What one would get wrong: the programs are not asked what they were built with. The bill says what lies in the root
and in the tree, with the hash of each library, so it is right for whatever was copied there.
"""

import argparse
import hashlib
import pathlib
import re
import subprocess
import sys

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL


def fail(seen, expected, remedy):
    sys.exit(f"bill_of_materials: {seen}; expected {expected}; {remedy}")


def debian_packages(status):
    """(name, version, architecture) of each installed package, from dpkg's status file."""
    for paragraph in status.read_text().split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Architecture|Status): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            yield fields["Package"], fields["Version"], fields["Architecture"]


def pinned(requirements):
    """{name: version} of a list with exact versions."""
    return dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^ ;\n]+)", requirements.read_text(), re.MULTILINE))


def version_of(program):
    """"0.1.0" from what `aerie-server --version` prints."""
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return text.split()[1]


def parts(arguments):
    for name, version, architecture in debian_packages(arguments.dpkg_status):
        yield Component(type=ComponentType.LIBRARY, name=name, version=version, bom_ref=f"deb/{name}:{architecture}",
                        purl=PackageURL("deb", "debian", name, version,
                                        {"arch": architecture, "distro": "debian-12"}))
    wheels = pinned(arguments.requirements)
    for name in ("torch", "nvidia-cuda-runtime", "nvidia-cuda-cupti"):
        if name not in wheels:
            fail(f"{arguments.requirements} pins no {name}", "the wheels that LibTorch comes from", "add it there")
        yield Component(type=ComponentType.LIBRARY, name=name, version=wheels[name], bom_ref=f"pypi/{name}",
                        purl=PackageURL("pypi", None, name, wheels[name]))
    libraries = sorted((arguments.tree / "lib/aerie").glob("*.so*"))
    if not libraries:
        fail(f"{arguments.tree} holds no lib/aerie/*.so", "an installed tree with its libraries",
             "run cmake --install with the component libraries")
    for library in libraries:
        if not library.is_symlink():
            yield Component(type=ComponentType.FILE, name=library.name, bom_ref=f"file/{library.name}",
                            hashes=[HashType(alg=HashAlgorithm.SHA_256,
                                             content=hashlib.sha256(library.read_bytes()).hexdigest())])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=pathlib.Path, required=True, metavar="DIR", help="the installed tree")
    parser.add_argument("--dpkg-status", type=pathlib.Path, required=True, metavar="FILE",
                        help="dpkg's status file of the root that it runs in")
    parser.add_argument("--requirements", type=pathlib.Path, required=True, metavar="FILE",
                        help="the list that LibTorch was installed from")
    parser.add_argument("--output", type=pathlib.Path, required=True, metavar="FILE", help="the bill, CycloneDX 1.6")
    arguments = parser.parse_args()

    server = Component(type=ComponentType.APPLICATION, name="aerie-server", bom_ref="aerie-server",
                       version=version_of(arguments.tree / "bin/aerie-server"),
                       licenses=[LicenseExpression("Apache-2.0")])
    bom = Bom(components=parts(arguments))
    bom.metadata.component = server
    bom.register_dependency(server, list(bom.components))
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        fail(f"the bill breaks its own schema: {str(error)[:200]}", "CycloneDX 1.6", "this is a bug of this program")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text + "\n")
    print(f"{arguments.output}: {len(bom.components)} components")


if __name__ == "__main__":
    main()
