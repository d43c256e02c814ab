"""Connects Lightning 2 to the client: a callback of its Trainer.

    from perseus.adapters.lightning import PerseusCallback
    Trainer(..., callbacks=[PerseusCallback(server="http://host:7787")])     # options of perseus.client.start()

A forward lasts from the start of the batch until the loss: on one device, Lightning calls only training_step(), so nothing
would see a call of the module. Microbatches: the trainer's accumulate_grad_batches. A training step with more than one
backward (several optimizers) is neither measured nor planned; plain.py logs that.

Errors:  none reach the trainer.
"""

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from perseus import client
from perseus.adapters import installation, plain


class PerseusCallback(Callback):
    def __init__(self, **options):
        self._options, self._loop = options, None

    def on_train_start(self, trainer, pl_module):
        self.on_train_end()  # of a run before that did not come to its end
        if installation.installed(pl_module) is not None:
            client.say_once("%s is followed already: this PerseusCallback does nothing", type(pl_module).__name__)
            return
        microbatches = self._options.get("microbatches") or trainer.accumulate_grad_batches
        options = {**self._options, "microbatches": microbatches}
        self._loop = installation.install(lambda: pl_module, options, plain.Loop)

    def on_train_batch_start(self, *_):
        if self._loop is not None:
            self._loop.before_forward()

    def on_before_backward(self, trainer, pl_module, loss):
        if self._loop is not None:
            self._loop.before_backward(loss)

    def on_validation_batch_start(self, *_):
        if self._loop is not None:  # not in the sanity check before training
            self._loop.before_evaluation_batch()

    def on_train_end(self, *_):
        if self._loop is not None:
            self._loop.uninstall()
            self._loop = None

    def on_exception(self, *_):
        self.on_train_end()
