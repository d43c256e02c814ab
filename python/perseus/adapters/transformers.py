"""Connects Hugging Face's Trainer to the client: a callback.

    from perseus.adapters.transformers import PerseusCallback
    Trainer(..., callbacks=[PerseusCallback(server="http://host:7787")])     # options of perseus.client.start()

Microbatches: gradient_accumulation_steps. perseus.adapters.plain follows the calls of the model.

Errors:  none reach the trainer.
"""

from transformers import TrainerCallback

from perseus.adapters import plain


class PerseusCallback(TrainerCallback):
    def __init__(self, **options):
        self._options, self._loop = options, None

    def on_train_begin(self, args, state, control, model=None, **_):
        microbatches = self._options.get("microbatches") or args.gradient_accumulation_steps
        self._loop = plain.install(model, **{**self._options, "microbatches": microbatches})

    def on_prediction_step(self, *_, **__):
        # Comes after each batch. With DDP, evaluation calls the module inside, which no hook sees.
        if self._loop is not None:
            self._loop.before_evaluation_batch()

    def on_train_end(self, args, state, control, model=None, **_):
        plain.uninstall(model)
