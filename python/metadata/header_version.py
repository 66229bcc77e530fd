"""Provides the version of the package to scikit-build-core: the version of the library in tutti.h."""

import os
import re

HEADERS = ("library/include/tutti/tutti.h", "../include/tutti/tutti.h")  # In an unpacked sdist; in the repository.


def dynamic_metadata(settings, project):
    with open(next(filter(os.path.exists, HEADERS)), encoding="utf-8") as header:
        return {"version": ".".join(re.findall(r"^#define TUTTI_VERSION_[A-Z]+ (\d+)$", header.read(), re.M))}
