"""Tells what is in the file system of an image, as CycloneDX (JSON): Debian's packages, and Python's.

usage: sbom.py ROOT, which writes to the standard output. Debian's are those of /var/lib/dpkg/status.d, where scanners
of images look for them; Python's are those that have metadata under ROOT. With SOURCE_DATE_EPOCH one file
system gives one list, to the byte.
"""

from __future__ import annotations

import email
import os
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL


def debian(root: Path) -> Iterator[Component]:
    """The packages that ``dpkg`` would list."""
    release = dict(line.split("=", 1) for line in (root / "etc/os-release").read_text().splitlines() if "=" in line)
    distribution = f"debian-{release['VERSION_ID'].strip(chr(34))}"
    for path in sorted((root / "var/lib/dpkg/status.d").iterdir()):
        fields = email.message_from_string(path.read_text())
        name, version = fields["Package"], fields["Version"]
        marks = {"arch": fields["Architecture"], "distro": distribution}
        purl = PackageURL("deb", "debian", name, version, marks)
        yield Component(name=name, version=version, type=ComponentType.LIBRARY, purl=purl, bom_ref=str(purl))


def python(root: Path) -> Iterator[Component]:
    """The distributions in the environment of the image, slacktide among them."""
    folders = [str(path) for path in (root / "opt/slacktide/lib").glob("python3.*/site-packages")]
    for one in sorted(metadata.distributions(path=folders), key=lambda one: one.name.lower()):
        purl = PackageURL("pypi", None, one.name.lower(), one.version)
        told = one.metadata.get("License-Expression")
        yield Component(
            name=one.name,
            version=one.version,
            type=ComponentType.APPLICATION if one.name == "slacktide" else ComponentType.LIBRARY,
            purl=purl,
            bom_ref=str(purl),
            licenses=[LicenseFactory().make_from_string(told)] if told else None,
        )


def main() -> None:
    """Write the list."""
    if len(sys.argv) != 2:
        sys.exit("usage: sbom.py ROOT")
    root = Path(sys.argv[1])
    found = [*debian(root), *python(root)]
    own = next((one for one in found if one.name == "slacktide"), None)
    if own is None:
        sys.exit(f"{root}: slacktide is not in it, expected the unpacked file system of the image (packaging/image)")
    bom = Bom(components=[one for one in found if one is not own])
    bom.metadata.component = own
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is not None:
        bom.metadata.timestamp = datetime.fromtimestamp(int(epoch), UTC)
        bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, "\n".join([epoch, *sorted(str(one.purl) for one in found)]))
    bom.register_dependency(own, bom.components)
    sys.stdout.write(JsonV1Dot6(bom).output_as_string(indent=1) + "\n")


if __name__ == "__main__":
    main()
