"""Loops as people write them, on real torch, one process: models that are saved, copied, scripted, exported or compiled, and
loops whose shape is not that of install(). Each loop gives the same losses without Perseus and with it; the log has one line
for what does not fit. Runs in the root that make_root.sh makes; with Accelerate in $PERSEUS_TRAINERS also what that compiles."""

import copy
import dataclasses
import importlib
import io
import logging
import pickle
import signal
import sys
import types
import unittest
from unittest import mock

import recorded_client
import torch
import torch._dynamo
import torch.distributed
from real_schedules import make_schedule
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

from perseus import client, measure
from perseus.adapters import installation, plain, torch_pipelining

WHOLE = [("begin", "forward"), ("end", "forward"), ("begin", "backward"), ("end", "backward")]


class Model(torch.nn.Module):
    def __init__(self, returns=lambda output: output):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second, self.returns = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), returns

    def forward(self, input):
        return self.returns(torch.relu(self.second(torch.tanh(self.first(input)))))


class Net(torch.nn.Module):
    """Without a function as attribute: such a model can be pickled."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, input):
        return torch.relu(self.layer(input))


def batch(i):
    return torch.randn(2, 4, generator=torch.Generator().manual_seed(i))


def train(model, steps=4, microbatches=1, optimizer=None, loss_of=lambda model, i: model(batch(i)).sum()):
    """Trains as a plain loop; returns the losses."""
    losses, optimizer = [], optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        for microbatch in range(microbatches):
            loss = loss_of(model, step * microbatches + microbatch)
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
    return losses


class Recorded(unittest.TestCase):
    def setUp(self):
        self.log, self.options = [], {}
        self.enterContext(recorded_client.replaced("recorded", self.log, self.options))
        self.lines = []
        handler = logging.Handler()
        handler.emit = lambda record: self.lines.append(record.getMessage())
        logging.getLogger("perseus").addHandler(handler)
        self.addCleanup(logging.getLogger("perseus").removeHandler, handler)
        client._said.clear()
        torch._dynamo.reset()
        counters.clear()

    def install(self, model, *arguments, **options):
        loop = plain.install(model, *arguments, **options)
        self.addCleanup(loop.uninstall)
        return loop

    def computations(self):
        return [entry[:2] for entry in self.log if entry[0] in ("begin", "end")]

    def steps(self):
        return [entry[1] for entry in self.log if entry[0] == "step"]


class Copies(Recorded):
    """What becomes of a followed model elsewhere."""

    def setUp(self):
        super().setUp()
        self.model = Net()
        self.install(self.model)
        train(self.model)

    def check(self, other):
        """It computes the same, reports nothing and can be followed."""
        torch.testing.assert_close(other(batch(1)), self.model(batch(1)))
        seen = self.computations(), self.steps().count("train")
        train(other, 1)
        self.assertEqual((self.computations(), self.steps().count("train")), seen)
        self.assertEqual(self.lines, [])

    def test_saved(self):
        for saved in (self.model, torch.nn.Sequential(self.model)):
            file = io.BytesIO()
            torch.save(saved, file)
            self.assertNotIn(b"perseus.", file.getvalue())  # a process without Perseus can load it
            file.seek(0)
            self.check(torch.load(file, weights_only=False))

    def test_pickled_for_a_spawned_process(self):
        self.check(pickle.loads(pickle.dumps(self.model)))

    def test_copied_with_its_dict(self):
        """As DataParallel makes replicas."""
        replica = self.model._replicate_for_data_parallel()
        replica._modules = {"layer": torch.nn.Linear(4, 4)}
        self.assertFalse(torch.equal(replica(batch(1)), self.model(batch(1))))

    def test_copied(self):
        for copied in (copy.copy, copy.deepcopy):
            other = copied(self.model)
            self.check(other)
            self.install(other)
            self.assertIsNot(other._compiled_call_impl, self.model._compiled_call_impl)

    def test_scripted_and_traced(self):
        self.check(torch.jit.script(self.model))
        self.check(torch.jit.trace(self.model, batch(1)))

    def test_exported(self):
        for strict in (True, False):
            exported = torch.export.export(self.model, (batch(1),), strict=strict)
            without = torch.export.export(Net(), (batch(1),), strict=strict)
            self.assertEqual([str(node) for node in exported.graph.nodes], [str(node) for node in without.graph.nodes])
            torch.testing.assert_close(exported.module()(batch(1)), self.model(batch(1)))

    def test_traced_by_fx(self):
        graph = torch.fx.symbolic_trace(torch.nn.Sequential(self.model))
        torch.testing.assert_close(graph(batch(1)), self.model(batch(1)))
        self.assertEqual(self.lines, [])

    def test_its_output_is_saved_without_a_warning(self):
        with mock.patch("warnings.warn") as warned:
            torch.save(self.model(batch(1)), io.BytesIO())
        warned.assert_not_called()


class Compiled(Recorded):
    def graphs(self, make):
        """The losses of a loop over a compiled model, and how many graphs torch made of it with how many breaks."""
        torch._dynamo.reset()
        counters.clear()
        losses = train(make())
        return losses, counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())

    def follow(self, make):
        """make(install): a compiled model. Losses and graphs are the same with Perseus, and each computation is reported."""
        without = self.graphs(lambda: make(lambda model: None))
        self.assertEqual(without[1:], (1, 0))
        self.assertEqual(self.graphs(lambda: make(self.install)), without)
        self.assertEqual(self.computations(), 4 * WHOLE)
        self.assertEqual(self.lines, [])

    def test_installed_before(self):
        def make(install):
            model = Model()
            install(model)
            return torch.compile(model, backend="eager", fullgraph=True)

        self.follow(make)

    def test_installed_after_the_first_call(self):
        def make(install):
            model = Model()
            compiled = torch.compile(model, backend="eager", fullgraph=True)
            compiled(batch(0))
            install(model)
            return compiled

        self.follow(make)

    def test_installed_on_what_compile_returns(self):
        def make(install):
            compiled = torch.compile(Model(), backend="eager", fullgraph=True)
            install(compiled)
            return compiled

        self.follow(make)

    def test_compiled_in_place_before(self):
        def make(install):
            model = Model()
            model.compile(backend="eager", fullgraph=True)
            install(model)
            return model

        self.follow(make)

    def test_compiled_in_place_afterwards(self):
        """Seen again from the first step of the optimizer on."""
        model = Model()
        self.install(model)
        model.compile(backend="eager", fullgraph=True)
        losses = train(model)
        self.assertEqual(losses, train(Model()))
        self.assertEqual(self.computations(), 3 * WHOLE)
        plain.uninstall(model)
        self.assertIsNotNone(model._compiled_call_impl)
        train(model, 1)

    def test_a_call_that_other_code_wraps(self):
        model = Model()
        self.install(model)
        ours = model._compiled_call_impl
        model._compiled_call_impl = lambda *arguments: ours(*arguments)
        train(model)
        self.assertEqual(self.computations(), 4 * WHOLE)
        self.assertEqual(self.lines, [])

    def test_uninstalled_below_other_code(self):
        model = Model()
        self.install(model)
        train(model)
        ours = model._compiled_call_impl
        model._compiled_call_impl = lambda *arguments: ours(*arguments)
        plain.uninstall(model)
        train(model)
        self.assertEqual(self.computations(), 4 * WHOLE)

    def test_a_part_that_is_compiled(self):
        """Regional compilation: the hooked model itself is not."""
        model = torch.nn.Sequential(torch.compile(Model(), backend="eager", fullgraph=True))
        self.install(model)
        train(model)
        self.assertEqual(self.computations(), 4 * WHOLE)

    def test_within_a_compiled_function(self):
        """It is in the graph, and nothing of Perseus is: one line says that nothing was seen."""
        model = Model()
        self.install(model)
        compiled = torch.compile(lambda i: model(i).sum(), backend="eager", fullgraph=True)
        losses = train(model, 21, loss_of=lambda _, i: compiled(batch(i)))
        self.assertEqual(losses, train(Model(), 21))
        self.assertEqual(self.computations(), [])
        self.assertEqual(len(self.lines), 1)
        self.assertIn("no training step of Model was seen in 20 optimizer steps", self.lines[0])

    def test_a_compiled_optimizer(self):
        def run(install):
            model = Model()
            install(model)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            optimizer.step = torch.compile(optimizer.step, backend="eager")
            return train(model, 3, optimizer=optimizer), sum(counters["graph_break"].values())

        without = run(lambda model: None)
        torch._dynamo.reset()
        counters.clear()
        self.assertEqual(run(self.install), without)
        self.assertEqual(self.lines, [])


class Shapes(Recorded):
    """Loops whose shape may not be that of install()."""

    def fits(self, *arguments, microbatches=1, make=Model, **loop):
        without = train(make(), microbatches=microbatches, **loop)
        model = make()
        self.install(model, *arguments)
        self.assertEqual(train(model, microbatches=microbatches, **loop), without)

    def misfits(self, loss_of, ran, steps=5):
        """Losses are the same; one line names what ran, and then the client sees nothing more."""
        without = train(Model(), steps, loss_of=loss_of)
        model = Model()
        self.install(model)
        with mock.patch.object(client, "withhold", wraps=client.withhold) as withhold:
            self.assertEqual(train(model, steps, loss_of=loss_of), without)
        withhold.assert_called_once()
        self.assertEqual(len(self.lines), 1)
        self.assertIn(f"Model ran {ran} in an iteration", self.lines[0])
        self.assertEqual(self.steps()[-1], "evaluate")  # at the highest clock

    def test_two_forwards_before_a_backward(self):
        def loss_of(model, i):
            return (model(batch(i)) * model(batch(i + 100))).sum()

        self.misfits(loss_of, "2 forward and 1 backward passes")

    def test_two_forwards_with_an_optimizer_that_is_not_torchs(self):
        def loss_of(model, i):
            return (model(batch(i)) * model(batch(i + 100))).sum()

        train(self.followed(), 5, optimizer=mock.Mock(), loss_of=loss_of)
        self.assertEqual(len(self.lines), 1)
        self.assertIn("Model ran 2 forward and 1 backward passes in an iteration", self.lines[0])

    def followed(self):
        model = Model()
        self.install(model)
        return model

    def test_two_backwards_of_a_forward(self):
        def loss_of(model, i):
            output = model(batch(i))
            output.sum().backward(retain_graph=True)
            return (output**2).sum()

        self.misfits(loss_of, "1 forward and 2 backward passes")

    def test_backwards_a_batch_behind_without_an_optimizer_of_torch(self):
        def run(model):
            before, losses = None, []
            for i in range(8):
                loss = model(batch(i)).sum()
                if before is not None:
                    before.backward()
                before = loss
                losses.append(loss.item())
            return losses

        self.assertEqual(run(self.followed()), run(Model()))
        self.assertEqual(len(self.lines), 1, self.lines)
        self.assertIn("not one backward after each forward", self.lines[0])

    def test_reentrant_checkpointing_of_the_whole_model(self):
        """Its forwards run without gradients, and again within the backwards."""

        def loss_of(model, i):
            return checkpoint(model, batch(i).requires_grad_(), use_reentrant=True).sum()

        without = train(Model(), 30, loss_of=loss_of)
        self.assertEqual(train(self.followed(), 30, loss_of=loss_of), without)
        self.assertEqual(len(self.lines), 1, self.lines)
        self.assertIn("Model ran 1 forward and 0 backward passes", self.lines[0])

    def test_a_gradient_penalty(self):
        def loss_of(model, i):
            input = batch(i).requires_grad_()
            output = model(input)
            (gradient,) = torch.autograd.grad(output.sum(), input, create_graph=True)
            return output.sum() + (gradient**2).sum()

        self.misfits(loss_of, "1 forward and 2 backward passes")

    def test_a_penalty_now_and_then_is_no_misfit(self):
        def loss_of(model, i):
            output = model(batch(i))
            if i % 8 == 0:
                output.sum().backward(retain_graph=True)
            return output.sum()

        self.fits(steps=33, loss_of=loss_of)
        self.assertEqual(self.lines, [])

    def test_an_output_whose_tensors_cannot_be_seen(self):
        class Hidden:
            __slots__ = ("tensor",)

        def hide(output):
            hidden = Hidden()
            hidden.tensor = output
            return hidden

        without = train(Model(), 5)
        model = Model(hide)
        self.install(model)
        self.assertEqual(train(model, 5, loss_of=lambda model, i: model(batch(i)).tensor.sum()), without)
        self.assertEqual(len(self.lines), 1)
        self.assertIn("Model ran 1 forward and 0 backward passes", self.lines[0])

    def test_nested_outputs(self):
        @dataclasses.dataclass
        class Output:
            parts: list

        def nest(output):
            return Output([{"logits": (None, [output])}])

        self.fits(make=lambda: Model(nest), loss_of=lambda model, i: model(batch(i)).parts[0]["logits"][1][0].sum())
        self.assertEqual(self.computations(), 4 * WHOLE)
        self.assertEqual(self.lines, [])

    def test_a_parameter_among_the_outputs(self):
        """As the logit_scale of CLIP: no hook stays on it."""

        def make():
            model = Model()
            model.scale = torch.nn.Parameter(torch.ones(()))
            model.returns = lambda output: {"logits": output, "scale": model.scale}
            return model

        def loss_of(model, i):
            output = model(batch(i))
            return (output["logits"] * output["scale"]).sum()

        self.fits(make=make, steps=8, loss_of=loss_of)
        self.assertEqual(self.computations(), 8 * WHOLE)
        self.assertEqual(self.lines, [])

    def test_more_microbatches_than_said(self):
        self.fits(1, microbatches=3)
        self.assertEqual(len(self.lines), 1)
        self.assertIn("Model is called 3 times before its optimizer steps: taken as the microbatches, not the 1 of install()", self.lines[0])
        self.assertEqual(self.steps(), 2 * 3 * ["train"] + 2 * ["train"])

    def test_fewer_microbatches_than_said(self):
        self.fits(8, microbatches=2)
        self.assertEqual(self.steps(), 4 * ["train"])
        self.assertEqual(len(self.lines), 1)

    def test_the_last_step_of_an_epoch(self):
        model = Model()
        self.install(model, 2)
        for _ in range(3):
            train(model, 3, 2)
            train(model, 1, 1)
        self.assertEqual(self.steps(), 12 * ["train"])
        self.assertEqual(self.lines, [])

    def test_two_optimizers_of_one_model(self):
        model = Model()
        self.install(model)
        other = torch.optim.SGD(model.second.parameters(), lr=0.1)
        hook = torch.optim.Optimizer.register_step_post_hook
        optimizer = torch.optim.SGD(model.first.parameters(), lr=0.1)
        hook(optimizer, lambda *_: other.step() and None)
        train(model, 5, optimizer=optimizer)
        self.assertEqual(self.computations(), 5 * WHOLE)
        self.assertEqual(self.lines, [])

    def test_the_optimizer_in_the_backward(self):
        from torch.distributed.optim import _apply_optimizer_in_backward

        def make():
            model = Model()
            _apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 0.1})
            return model

        nothing = mock.Mock()
        self.fits(make=make, optimizer=nothing)
        self.assertEqual(self.computations(), 4 * WHOLE)
        self.assertEqual(self.lines, [])

    def test_two_models(self):
        """The client follows the first; calls of the second, within an iteration or between two, change nothing."""
        first, second = Model(), Model()
        self.install(first)
        self.install(second)
        optimizer = torch.optim.SGD(second.parameters(), lr=0.1)
        client.start()
        with mock.patch.object(client, "current", lambda: client):
            for i in range(3):
                train(first, 1, loss_of=lambda model, i: second(model(batch(i))).sum())
                train(second, 1, optimizer=optimizer)
        self.assertEqual(self.computations(), 3 * WHOLE)
        self.assertEqual(self.lines, ["another Model trains, too: it is not measured, the client follows the first"])

    def test_a_model_in_place_of_another(self):
        client.start()
        with mock.patch.object(client, "current", lambda: client):
            for _ in range(3):
                model = Model()
                self.install(model)
                train(model, 2)
        self.assertEqual(self.computations(), 6 * WHOLE)
        self.assertEqual(self.lines, [])

    def test_installed_again_with_other_microbatches(self):
        model = Model()
        first = self.install(model, 4)
        train(model, 1, 4)
        self.assertIs(self.install(model, 2), first)
        train(model, 2, 2)
        self.assertEqual(self.steps(), 3 * ["train"])
        self.assertEqual(self.lines, [])


class Wrong(Recorded):
    """What is passed by mistake: one line, and nothing else."""

    def refused(self, install, words):
        self.lines.clear()
        client._said.clear()
        self.assertIsNone(install())
        self.assertEqual(len(self.lines), 1, self.lines)
        self.assertIn(words, self.lines[0])

    def test_arguments(self):
        model = Model()
        self.refused(lambda: plain.install(model, model="gpt"), "multiple values for argument 'model'")
        self.refused(lambda: plain.install(model, 1, microbatches=4), "multiple values for argument 'microbatches'")
        self.refused(lambda: measure.loop(model, start=4), "multiple values for argument 'start'")
        self.refused(plain.install, "missing a required argument: 'model'")
        self.assertEqual(train(model), train(Model()))
        self.assertEqual(self.log, [])

    def test_a_class(self):
        call = torch.nn.Module._compiled_call_impl
        self.refused(lambda: plain.install(torch.nn.Module), "Module cannot be followed")
        plain.uninstall(torch.nn.Module)
        self.assertIs(torch.nn.Module._compiled_call_impl, call)

    def test_no_microbatches_are_one(self):
        model = Model()
        self.install(model, None)
        train(model)
        self.assertEqual(self.steps(), 4 * ["train"])
        self.assertEqual(self.lines, [])

    def test_a_log_that_raises(self):
        def fail(record):
            raise RuntimeError(record.getMessage())

        handler = logging.Handler()
        handler.emit = fail
        logging.getLogger().addHandler(handler)
        self.addCleanup(logging.getLogger().removeHandler, handler)
        model = Model()
        self.assertIsNone(plain.install(model, foo=4))
        self.install(model)
        train(model, 30, loss_of=lambda model, i: model.forward(batch(i)).sum())

    def test_installed_again_after_the_program_stopped_the_client(self):
        model = Model()
        self.install(model)
        train(model)
        self.options.clear()
        self.install(model, job_name="phase 2")
        train(model)
        self.assertEqual(self.options["job_name"], "phase 2")
        self.assertEqual(self.lines, [])


class Preempted(Exception):
    pass


class Handlers(Recorded):
    """What a signal's handler raises within any hook ends the loop."""

    def test_each_raises(self):
        def handler(*_):
            raise Preempted

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
        raising = lambda *_: signal.raise_signal(signal.SIGUSR1)  # noqa: E731
        hooks = {"_end": client, "_set_speed": client, "_step_end": client, "trains": plain.Loop, "_weigh": plain.Loop}
        for name, owner in {**hooks, "_differentiable": plain, "_backward_begins": plain.Loop, "_judge": plain.Loop}.items():
            with self.subTest(name):
                model = Model()
                self.install(model)
                train(model)
                with mock.patch.object(owner, name, raising), self.assertRaises(Preempted):
                    if owner is not client:  # which the first step starts
                        model = Model()
                        self.install(model)
                    train(model)
                self.assertEqual(self.lines, [])


class Trainers(Recorded):
    """Callbacks of trainers, called as these call them. The trainers themselves: test_trainers.py."""

    def adapter(self, name, **modules):
        names = {name: types.ModuleType(name) for name in modules}
        for name_of, callback in modules.items():
            setattr(names[name_of], callback, object)
        self.enterContext(mock.patch.dict(sys.modules, names))
        sys.modules.pop(f"perseus.adapters.{name}", None)
        self.addCleanup(sys.modules.pop, f"perseus.adapters.{name}", None)
        return importlib.import_module(f"perseus.adapters.{name}").PerseusCallback(job_name="test")

    def test_transformers_trains_twice_with_other_settings(self):
        """As auto_find_batch_size does: the first training does not end."""
        callback, model = self.adapter("transformers", transformers="TrainerCallback"), Model()
        self.addCleanup(plain.uninstall, model)
        before = len(installation._listeners)
        for accumulated in (8, 16):
            arguments = types.SimpleNamespace(gradient_accumulation_steps=accumulated)
            callback.on_train_begin(arguments, None, None, model=model)
            train(model, 3, accumulated)
            watching = len(installation._listeners)
        callback.on_train_end(arguments, None, None, model=model)
        self.assertEqual(self.steps(), 6 * ["train"])
        self.assertEqual(self.computations(), 3 * (8 + 16) * WHOLE)
        self.assertEqual(self.lines, [])
        self.assertNotIn("_compiled_call_impl", vars(model))
        self.assertLessEqual(watching, before + 2)

    def test_transformers_with_torch_compile(self):
        """Its Trainer lets Accelerate compile the model, and gives the callback the one inside."""
        try:
            from accelerate import Accelerator
            from accelerate.utils import TorchDynamoPlugin
        except ImportError:
            self.skipTest("PERSEUS_TRAINERS has no accelerate")

        def run(callback):
            torch._dynamo.reset()
            counters.clear()
            plugin = TorchDynamoPlugin(backend="eager", fullgraph=True)
            accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, dynamo_plugin=plugin)
            inner, losses = Model(), []
            model, optimizer = accelerator.prepare(inner, torch.optim.SGD(inner.parameters(), lr=0.1))
            callback and callback.on_train_begin(types.SimpleNamespace(gradient_accumulation_steps=2), None, None, model=inner)
            for i in range(8):
                with accelerator.accumulate(model):
                    loss = model(batch(i)).sum()
                    accelerator.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
                    losses.append(loss.item())
            callback and callback.on_train_end(None, None, None, model=inner)
            return losses, counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())

        without = run(None)
        self.assertEqual(without[1:], (1, 0))
        self.assertEqual(run(self.adapter("transformers", transformers="TrainerCallback")), without)
        self.assertEqual(self.computations(), 8 * WHOLE)
        self.assertEqual(self.steps(), 4 * ["train"])

    def lightning(self, callback, model, optimizers, steps, losses_of):
        """Manual optimization: one backward and one step of an optimizer for each loss of a batch."""
        losses = []
        callback and callback.on_train_start(types.SimpleNamespace(accumulate_grad_batches=1), model)
        for step in range(steps):
            callback and callback.on_train_batch_start()
            for loss, optimizer in zip(losses_of(model, step), optimizers):
                callback and callback.on_before_backward(None, model, loss)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                losses.append(loss.item())
        callback and callback.on_train_end()
        return losses

    def test_transformers_with_a_setting_of_its_own(self):
        """That of the trainer, and one that is no option."""
        make = type(self.adapter("transformers", transformers="TrainerCallback"))
        arguments = types.SimpleNamespace(gradient_accumulation_steps=2)
        for options, steps in (({"microbatches": 4}, 2), ({"model": "gpt"}, 0)):
            self.log.clear()
            model, callback = Model(), make(**options)
            self.addCleanup(plain.uninstall, model)
            callback.on_train_begin(arguments, None, None, model=model)
            train(model, 2, 4)
            callback.on_train_end(arguments, None, None, model=model)
            self.assertEqual(self.steps(), steps * ["train"])
        self.assertEqual(len(self.lines), 1)
        self.assertIn("multiple values for argument 'model'", self.lines[0])

    def test_two_callbacks_of_lightning(self):
        callback = self.adapter("lightning", **{"lightning.pytorch": "Callback"})
        second, model = type(callback)(microbatches=3), Model()
        trainer = types.SimpleNamespace(accumulate_grad_batches=1)
        for one in (callback, second):
            one.on_train_start(trainer, model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(10):
            for one in (callback, second):
                one.on_train_batch_start()
            loss = model(batch(i)).sum()
            for one in (callback, second):
                one.on_before_backward(None, model, loss)
            loss.backward()
            optimizer.step()
        for one in (callback, second):
            one.on_train_end()
        self.assertEqual(self.computations(), 10 * WHOLE)
        self.assertEqual(self.lines, ["Model is followed already: this PerseusCallback does nothing"])

    def test_lightning_with_two_optimizers(self):
        def losses_of(model, step):
            yield model.first(batch(step)).sum()
            yield model(batch(step)).sum()

        def run(callback):
            model = Model()
            optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model.first, model.second)]
            return self.lightning(callback, model, optimizers, 10, losses_of)

        callback = self.adapter("lightning", **{"lightning.pytorch": "Callback"})
        self.assertEqual(run(callback), run(None))
        self.assertEqual(len(self.lines), 1)
        self.assertIn("Model ran 0 forward and 1 backward passes in an iteration", self.lines[0])
        self.assertLess(self.steps().count("train"), 10)  # never two of a batch


class Pipelines(Recorded):
    """torch.distributed.pipelining with one rank; more of it: test_torch_pipelining.py."""

    MICROBATCHES = 4

    @classmethod
    def setUpClass(cls):
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        cls.addClassCleanup(torch.distributed.destroy_process_group)

    def schedule(self, name="1F1B"):
        loss = lambda output, target: (output - target).sum()  # noqa: E731
        return make_schedule(name, 0, 1, self.MICROBATCHES, lambda _: Net(), lambda _: loss)[0]

    def batch(self):
        return torch.cat([batch(i) for i in range(self.MICROBATCHES)])

    def test_batches_that_the_program_splits(self):
        """The function within step(), for 20 steps."""
        schedule, batches = self.schedule(), [batch(i) for i in range(self.MICROBATCHES)]
        torch_pipelining.install(schedule)
        schedule.step(self.batch(), target=self.batch())
        for _ in range(20):
            schedule._step_microbatches([(one,) for one in batches], [{}] * self.MICROBATCHES, batches, [])
        self.assertEqual(self.steps(), 21 * ["train"])
        self.assertEqual(len(self.computations()), 21 * 4 * self.MICROBATCHES)
        self.assertEqual(self.lines, [])

    def test_a_schedule_that_is_built_anew(self):
        """Without install(): one line. With it: each goes on with the job of the one before."""
        torch_pipelining.install(self.schedule())
        optimizer = torch.optim.SGD(Net().parameters(), lr=0.1)
        for _ in range(20):
            self.schedule().step(self.batch(), target=self.batch())
            optimizer.step()
        self.assertEqual(len(self.lines), 1)
        self.assertIn("no training step of Schedule1F1B was seen in 20 optimizer steps since install()", self.lines[0])
        self.assertIn("a schedule that is built anew", self.lines[0])
        client.start()
        with mock.patch.object(client, "current", lambda: client):
            for _ in range(3):
                schedule = self.schedule()
                torch_pipelining.install(schedule)
                schedule.step(self.batch(), target=self.batch())
        self.assertEqual(self.steps(), 3 * ["train"])
        self.assertEqual(len(self.lines), 1)

    def test_another_schedule_within_the_loss(self):
        """A teacher's, as for distillation: its computations are not the student's."""
        teacher = self.schedule("GPipe")
        loss = lambda output, target: (teacher.step(self.batch(), target=self.batch()), (output - target).sum())[1]  # noqa: E731
        student = make_schedule("1F1B", 0, 1, self.MICROBATCHES, lambda _: Net(), lambda _: loss)[0]
        torch_pipelining.install(student)
        torch_pipelining.install(teacher)
        optimizer = torch.optim.SGD(Net().parameters(), lr=0.1)
        for _ in range(25):
            student.step(self.batch(), target=self.batch())
            optimizer.step()
        self.assertEqual(self.steps(), 25 * ["train"])
        self.assertEqual(self.computations(), 25 * self.MICROBATCHES * WHOLE)
        self.assertEqual(self.lines, ["ScheduleGPipe runs within a step of another: it is not measured"])

    def test_with_the_option_schedule(self):
        schedule = self.schedule()
        torch_pipelining.install(schedule, schedule="gpipe")
        schedule.step(self.batch(), target=self.batch())
        self.assertEqual(self.options["schedule"], "gpipe")
        self.assertEqual(self.lines, [])

    def test_evaluation_before_training(self):
        if not hasattr(torch.distributed.pipelining.Schedule1F1B, "eval"):
            self.skipTest("this torch has no eval()")
        schedule = self.schedule()
        torch_pipelining.install(schedule)
        for _ in range(5):
            schedule.eval(self.batch(), target=self.batch())
        self.assertEqual(self.options, {})
        schedule.step(self.batch(), target=self.batch())
        self.assertEqual(self.steps(), ["train"])


class Evaluation(Recorded):
    """Without no_grad(): a step that turns out to be one is begun anew as evaluation."""

    def test_with_gradients_is_no_iteration(self):
        model = Model()
        self.install(model, 2)
        for _ in range(3):
            train(model, 2, 2)
            for i in range(4):
                model(batch(i)).sum().item()
        self.assertEqual([*self.steps(), "evaluate"], 3 * (2 * ["train"] + 4 * ["train", "evaluate"]))
        self.assertEqual(self.lines, [])

    def test_a_forward_that_raises_is_no_iteration(self):
        model = Model()
        self.install(model)
        train(model, 2)
        with self.assertRaises(RuntimeError):
            model(torch.ones(2, 77))
        train(model, 2)
        self.assertEqual(self.steps(), 2 * ["train"] + ["train", "evaluate"] + 2 * ["train"])


class Silence(Recorded):
    def test_calls_of_forward(self):
        """Also of a part of the model."""
        for loss_of in (lambda model, i: model.forward(batch(i)).sum(), lambda model, i: model.first(batch(i)).sum()):
            with self.subTest():
                self.lines.clear()
                client._said.clear()
                model = Model()
                self.install(model)
                train(model, 19, loss_of=loss_of)
                self.assertEqual(self.lines, [])
                train(model, 30, loss_of=loss_of)
                self.assertEqual(len(self.lines), 1)
                self.assertIn("no training step of Model was seen in 20 optimizer steps since install()", self.lines[0])
                self.assertIn("calls of model.forward()", self.lines[0])

    def minute(self):
        """Returns the time that watches see, and the only timer that they share."""
        now = types.SimpleNamespace(s=100.0)
        self.enterContext(mock.patch.multiple(installation, _timer=None, _watches=[]))
        self.enterContext(mock.patch.object(installation, "time", types.SimpleNamespace(monotonic=lambda: now.s)))
        return now, self.enterContext(mock.patch.object(installation.threading, "Timer"))

    def test_a_minute(self):
        now, timer = self.minute()
        model = Model()
        loop = self.install(model)
        seconds, run = timer.call_args.args
        self.assertEqual(seconds, 60)
        now.s += 60
        run()
        self.assertEqual(len(self.lines), 1)
        self.assertIn("no training step of Model was seen in 60 s since install()", self.lines[0])
        loop.uninstall()
        self.install(model)
        train(model, 1)
        timer.return_value.cancel.assert_called_with()

    def test_of_many_models_takes_one_thread(self):
        now, timer = self.minute()
        models = [Model() for _ in range(300)]
        for model in models:
            self.install(model)
            now.s += 0.1
        timer.return_value.start.assert_called_once_with()
        train(models[1], 1)
        now.s = 160
        timer.call_args.args[1]()
        self.assertEqual(len(self.lines), 1)
        self.assertAlmostEqual(timer.call_args.args[0], 0.2)  # the second one trains

    def test_where_no_thread_can_start(self):
        _, timer = self.minute()
        timer.return_value.start.side_effect = RuntimeError("can't start new thread")
        model = Model()
        self.install(model)
        train(model, 30, loss_of=lambda model, i: model.forward(batch(i)).sum())
        self.assertEqual(len(self.lines), 1)
        self.assertIn("in 20 optimizer steps since install()", self.lines[0])

    def test_a_copy_that_trains_on(self):
        """Also if the model that was followed is gone: one line."""
        for keeps in (True, False):
            with self.subTest(keeps=keeps):
                self.lines.clear()
                client._said.clear()
                client.start()
                with mock.patch.object(client, "current", lambda: client):
                    model = Net()
                    self.install(model)
                    train(model, 30)
                    self.assertEqual(self.lines, [])
                    best = copy.deepcopy(model)
                    if not keeps:
                        del model
                    train(best, 50)
                self.assertEqual(len(self.lines), 1, self.lines)
                self.assertIn("no training step of Net was seen in the last 20 optimizer steps: what trains now", self.lines[0])

    def test_a_loop_that_is_measured_ends_without_a_training_step(self):
        measure.loop(Model())
        self.assertIn("nothing was measured: no training step came", measure.report())


if __name__ == "__main__":
    sys.path.append("/trainers")
    unittest.main()
