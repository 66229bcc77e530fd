"""Entry points that PyTorch calls. They import Tutti only when a process group needs it.

autoload():  group torch.backends; PyTorch 2.5 and newer call it in `import torch`
register():  group torch.distributed.backends; PyTorch 2.14 and newer call it for an unknown backend named "tutti"
"""

import os


def _create(given, pg_options=None):
    import tutti.torch._registration

    return tutti.torch._registration.create(given, pg_options)


def register():
    import torch.distributed as dist

    if dist.is_available() and "TUTTI" not in dist.Backend._plugins:
        dist.Backend.register_backend("tutti", _create, extended_api=True, devices=["cpu", "cuda"])


def autoload():
    value = os.environ.get("TUTTI_PYTORCH_REPLACE_GLOO", "")
    if value not in ("", "0", "1"):
        raise ValueError(f"TUTTI_PYTORCH_REPLACE_GLOO is {value!r}; it must be 0 or 1, or unset")
    if value == "1":
        import tutti.torch

        tutti.torch.replace_gloo()
    else:
        register()
