"""torchrun, where PyTorch was built without libuv, as Debian's is: its own stores ask for libuv, whatever USE_LIBUV says.

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
