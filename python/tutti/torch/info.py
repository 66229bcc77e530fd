"""Prints the versions, the library and the path (C++ or Python) that the backend uses: python -m tutti.torch.info"""

from __future__ import annotations

import os
import platform

import torch

import tutti

from . import _native, _registration


def main() -> None:
    extension = _native.cache_path()
    state = "built" if os.path.exists(extension) else "not built; run `python -m tutti.torch.build`"
    print(f"PyTorch    {torch.__version__}")
    print(f"Python     {platform.python_version()}")
    print(f"Tutti      {tutti.__version__} ({tutti.so_path})")
    print(f"extension  {extension} ({state})")
    print(f"path       {_registration.path()}")


if __name__ == "__main__":
    main()
