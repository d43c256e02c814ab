"""Lightning 2: a callback of its Trainer.

    from perseus.adapters.lightning import PerseusCallback
    Trainer(..., callbacks=[PerseusCallback(server="http://host:7787")])     # options of perseus.client.start()

Input: the hooks of Lightning's Callback. A forward is from the batch's start to the loss: the calls of a module that is
trained on one device cannot be watched, as Lightning calls its training_step() only. Microbatches: the trainer's
accumulate_grad_batches. A training step that runs more than one backward (several optimizers) is not followed. Errors:
none reach the trainer.
"""

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from perseus import client
from perseus.adapters import plain


class PerseusCallback(Callback):
    def __init__(self, **options):
        self._options, self._loop = options, None

    def on_train_start(self, trainer, pl_module):
        try:
            self._loop = plain.Loop(pl_module, trainer.accumulate_grad_batches, self._options)
        except Exception as error:
            client.say_once("Lightning's trainer is not followed: %r", error)

    def on_train_batch_start(self, *_):
        if self._loop is not None:
            self._loop.before_forward()

    def on_before_backward(self, trainer, pl_module, loss):
        if self._loop is not None:
            self._loop.after_forward(loss)

    def on_train_end(self, *_):
        if self._loop is not None:
            self._loop.uninstall()

    def on_exception(self, *_):
        self.on_train_end()
