"""torchrun for a PyTorch built without libuv, as Debian's: its own stores request libuv regardless of USE_LIBUV.

usage: torchrun_without_libuv.py TORCHRUN-ARGUMENT...    the ranks import this module before they make a process group
"""

import sys

import torch.distributed


class StoreWithoutLibuv(torch.distributed.TCPStore):
    def __init__(self, *args, **options):
        options.setdefault("use_libuv", False)
        super().__init__(*args, **options)


torch.distributed.TCPStore = sys.modules["torch.distributed.rendezvous"].TCPStore = StoreWithoutLibuv

from torch.distributed.run import main  # noqa: E402

if __name__ == "__main__":
    main()
