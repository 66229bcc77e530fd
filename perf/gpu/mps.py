"""Runs MPS (multi-process service), with which processes use a GPU at the same time instead of in time slices."""

import contextlib
import os
import shutil
import subprocess

CONTROL = "nvidia-cuda-mps-control"


@contextlib.contextmanager
def running(run):
    """Yields the environment of MPS's clients, or None if MPS is not installed or does not start."""
    folder = os.path.join(run.folder, "mps")
    os.makedirs(folder, exist_ok=True)
    clients = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    environment = {**os.environ, **clients}
    if shutil.which(CONTROL) is None or subprocess.run([CONTROL, "-d"], env=environment, check=False).returncode != 0:
        yield None
        return
    try:
        yield clients
    finally:
        try:  # Clients that hang are ended.
            subprocess.run([CONTROL], input="quit -t 5\n", text=True, env=environment, timeout=30, check=False,
                           stdout=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"# ending MPS failed: {error}", flush=True)
