"""Runs the cases of several test programs in one process, because importing PyTorch takes seconds.

    run_cases.py collectives_test,messages_test --ranks 1,2,3
"""

import importlib
import sys

from harness import main

if __name__ == "__main__":
    for name in sys.argv.pop(1).split(","):
        importlib.import_module(name)
    sys.exit(main())
