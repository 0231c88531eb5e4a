"""Loops as people write them, right and wrong: each counts every unit as the plan drew it, or is refused.

What each step counts is read off its gradient and compared with the batches that the plan draws from the
same bits: a unit has a coordinate of its own.
"""

import contextlib
import copy
import itertools
import os
import pickle
import queue
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import SourdineError
from sourdine.learning import Flat, PricedPlan, Step, TrainingPlan, loader, plan
from sourdine.testing import SeededBits

SIZE = 24
UNITS = torch.eye(SIZE)
BITS = 5
MANY = 1 << 12


class Net(nn.Module):
    """A number for each unit, and one layer behind it."""

    more: nn.Linear

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Linear(SIZE, 1, bias=False)
        nn.init.zeros_(self.table.weight)
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.table(x)
        return out


class Loop:
    """What a loop needs, and a count of what its steps added."""

    def __init__(self, patch: pytest.MonkeyPatch, **given: Any) -> None:
        wanted = {"noise_multiplier": 2.0**-20, "delta": 1e-3, "epochs": 1, "batch_size": 4} | given
        self.plan: PricedPlan = plan(TrainingPlan(**wanted), size=SIZE)
        self.model = Net()
        self.taken = list[tuple[int, Tensor]]()
        write = Step._write_noisy

        def noted(step: Step, sums: Any) -> None:
            write(step, sums)
            grad = next((each.grad for each in step.model.parameters() if each.shape == (1, SIZE)), None)
            if grad is not None and step is self.step:
                number = step.steps - step.left - 1
                self.taken.append((number, (grad[0].float() * step.batch_size).abs()))

        patch.setattr(Step, "_write_noisy", noted)
        self.step = self.made()
        self.optimizer: torch.optim.Optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = self.drawn()

    def made(self, **given: Any) -> Step:
        return Step.of(self.model, self.plan, clipping=Flat(norm=1.0), bits=SeededBits(3), **given)

    def drawn(self, **given: Any) -> Any:
        return loader((UNITS,), self.plan, bits=SeededBits(BITS), **given)

    def losses(self, x: Tensor) -> Tensor:
        return 4 * self.model(x).squeeze(1)

    def add(self, x: Tensor) -> bool:
        return self.step.add(self.losses, x)

    def close(self) -> None:
        self.step.close()
        self.optimizer.step()

    def take(self, x: Tensor) -> None:
        self.add(x)
        self.close()

    def train(self, batches: Any = None) -> None:
        for (x,) in self.loader if batches is None else batches:
            self.take(x)

    def check(self, *, whole: bool) -> None:
        """Each step counts whom the plan drew for it at most once, each with a norm at most, and no other."""
        batches = [set(each.tolist()) for each in self.plan.batches.draw(SeededBits(BITS))]
        assert len({number for number, _ in self.taken}) == len(self.taken) <= self.plan.steps
        for number, each in self.taken:
            assert float(each.max()) <= 1.01
            counted = set(torch.nonzero(each > 0.01).flatten().tolist())
            assert counted <= batches[number]
            if whole and counted:
                assert counted == batches[number]


Case = Callable[[Loop], None]
RIGHT: list[Case] = []
REFUSED: list[Case] = []


def right(case: Case) -> Case:
    RIGHT.append(case)
    return case


def refused(case: Case) -> Case:
    REFUSED.append(case)
    return case


# Accumulation.


@refused
def accumulate_four(loop: Loop) -> None:
    for number, (x,) in enumerate(loop.loader):
        loop.add(x)
        if number % 4 == 3:
            loop.close()


@refused
def accumulate_until_the_end(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.add(x)
    loop.close()


@refused
def accumulate_copies(loop: Loop) -> None:
    for number, (x,) in enumerate(loop.loader):
        loop.add(x.clone())
        if number % 4 == 3:
            loop.close()


@refused
def join_two_batches(loop: Loop) -> None:
    batches = iter(loop.loader)
    for (one,), (two,) in zip(batches, batches, strict=False):
        loop.take(torch.cat([one, two]))


@refused
def add_a_batch_twice(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.add(x)
        loop.take(x)


@refused
def add_a_copy_after_a_batch(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.add(x)
        loop.take(x.clone())


@refused
def join_a_batch_with_itself(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(torch.cat([x, x]))


@refused
def add_one_half_twice(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.add(x[: len(x) // 2 + 1])
        loop.take(x[: len(x) // 2 + 1])


@refused
def add_one_half_of_a_copy_twice(loop: Loop) -> None:
    for (x,) in loop.loader:
        half = x.clone()[: len(x) // 2 + 1]
        loop.add(half)
        loop.take(half)


@refused
def expand_an_example(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(x[:1].expand(5, -1) if len(x) else x)


@right
def add_parts(loop: Loop) -> None:
    for (x,) in loop.loader:
        for part in x.split(2):
            loop.add(part)
        loop.close()


@right
def add_parts_of_a_copy(loop: Loop) -> None:
    for (x,) in loop.loader:
        for part in (1.0 * x).split(2):
            loop.add(part)
        loop.close()


@right
def compute_in_parts(loop: Loop) -> None:
    loop.step.physical_batch_size = 2
    loop.train()


@right
def load_in_parts(loop: Loop) -> None:
    for (x,) in loop.drawn(physical_batch_size=2):
        if loop.add(x):
            loop.optimizer.step()


@right
def step_the_optimizer_after_each_part(loop: Loop) -> None:
    for (x,) in loop.drawn(physical_batch_size=2):
        loop.add(x)
        loop.optimizer.step()


@refused
def close_each_part(loop: Loop) -> None:
    for (x,) in loop.drawn(physical_batch_size=1):
        loop.take(x)


# Skipped and empty batches.


@refused
def skip_every_second(loop: Loop) -> None:
    for number, (x,) in enumerate(loop.loader):
        if number % 2 == 0:
            loop.take(x)


@refused
def leave_empty_batches_out(loop: Loop) -> None:
    for (x,) in loop.loader:
        if len(x) < 4:
            continue
        loop.take(x)


@right
def close_without_adding_small_ones(loop: Loop) -> None:
    for (x,) in loop.loader:
        if len(x) >= 3:
            loop.add(x)
        loop.close()


@right
def drop_every_second(loop: Loop) -> None:
    for number, (x,) in enumerate(loop.loader):
        loop.add(x)
        if number % 2:
            loop.step.drop()
        else:
            loop.close()


@right
def close_alone(loop: Loop) -> None:
    for _ in loop.loader:
        loop.close()


@refused
def close_twice(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(x)
        loop.close()


@right
def step_the_optimizer_twice(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(x)
        loop.optimizer.step()


@right
def forget_the_optimizer(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.add(x)
        loop.step.close()


@refused
def take_more_steps_than_paid(loop: Loop) -> None:
    loop.train()
    loop.close()


@refused
def raise_the_number_of_steps(loop: Loop) -> None:
    loop.train()
    loop.step.left = 5  # type: ignore[misc]
    loop.close()


# Batches again, in another order, or of others.


@refused
def go_through_the_loader_again(loop: Loop) -> None:
    for _ in range(3):
        loop.train()


@refused
def make_a_loader_for_each_epoch(loop: Loop) -> None:
    for _ in range(3):
        loop.train(loop.drawn())


@refused
def keep_the_batches_and_go_again(loop: Loop) -> None:
    batches = list(loop.loader)
    for _ in range(2):
        loop.train(batches)


@right
def keep_the_batches(loop: Loop) -> None:
    loop.train(list(loop.loader))


@refused
def shuffle_the_batches(loop: Loop) -> None:
    batches = list(loop.loader)
    random.Random(1).shuffle(batches)
    loop.train(batches)


@refused
def take_one_batch_until_it_is_learnt(loop: Loop) -> None:
    (x,) = next(iter(loop.loader))
    for _ in range(5):
        loop.take(x)


@refused
def cycle_the_batches(loop: Loop) -> None:
    loop.train(itertools.islice(itertools.cycle(loop.loader), 30))


@refused
def take_all_of_the_data(loop: Loop) -> None:
    loop.train([(UNITS,)])


@refused
def take_batches_of_a_shuffling_loader(loop: Loop) -> None:
    loop.train(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(UNITS), 4, shuffle=True))


@refused
def take_batches_of_a_larger_plan(loop: Loop) -> None:
    large = plan(TrainingPlan(noise_multiplier=1, delta=1e-3, epochs=2, batch_size=12), size=SIZE)
    loop.train(loader((UNITS,), large, bits=SeededBits(BITS)))


@refused
def use_one_loader_for_two_steps(loop: Loop) -> None:
    other = loop.made()
    for (x,) in loop.loader:
        loop.take(x)
        other.add(loop.losses, x)
        other.close()


@refused
def pair_inputs_with_the_targets_of_others(loop: Loop) -> None:
    both = loader((UNITS, torch.ones(SIZE)), loop.plan, bits=SeededBits(BITS))
    for x, y in both:
        if len(x) > 2:
            loop.step.add(lambda x, y: loop.losses(x) * y, x[1:], y[:-1])
        loop.close()


@right
def break_and_go_on(loop: Loop) -> None:
    while loop.step.left:
        for number, (x,) in enumerate(loop.loader):
            loop.take(x)
            if number == 2:
                break


@right
def break_before_a_batch_is_added(loop: Loop) -> None:
    while loop.step.left:
        for number, (x,) in enumerate(loop.loader):
            if number == 2:
                break
            loop.take(x)


@right
def look_at_the_first_batch(loop: Loop) -> None:
    next(iter(loop.loader))
    loop.train()


@right
def take_the_loader_in_slices(loop: Loop) -> None:
    batches = iter(loop.loader)
    for _ in range(4):
        loop.train(itertools.islice(batches, 3))


@right
def read_ahead_in_a_thread(loop: Loop) -> None:
    waiting: queue.Queue[Any] = queue.Queue(3)

    def read() -> None:
        for batch in loop.loader:
            waiting.put(batch)
        waiting.put(None)

    thread = threading.Thread(target=read)
    thread.start()
    loop.train(iter(waiting.get, None))
    thread.join()


# Copies, threads, processes.


@refused
def copy_the_step(loop: Loop) -> None:
    copy.deepcopy(loop.step)


@refused
def pickle_the_step(loop: Loop) -> None:
    pickle.dumps(loop.step)


@refused
def copy_the_loader(loop: Loop) -> None:
    copy.deepcopy(loop.loader)


@refused
def copy_the_model_with_its_step(loop: Loop) -> None:
    vars(loop.model)["step"] = loop.step
    copy.deepcopy(loop.model)


@right
def copy_the_model(loop: Loop) -> None:
    for (x,) in loop.loader:
        copy.deepcopy(loop.model)
        loop.take(x)


@refused
def add_in_threads(loop: Loop) -> None:
    problems, batches = list[BaseException](), list(loop.loader)
    barrier = threading.Barrier(4)

    def run(x: Tensor) -> None:
        barrier.wait()
        try:
            loop.take(x)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=batches[number]) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(problems) >= 3
    raise problems[0]


@refused
def train_in_a_forked_process(loop: Loop) -> None:
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            loop.train()
        except SourdineError:
            os.write(write, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 9) == b"refused"
    os.close(read)
    raise SourdineError


@refused
def add_within_losses(loop: Loop) -> None:
    def losses(x: Tensor) -> Tensor:
        loop.add(x)
        return loop.losses(x)

    loop.step.add(losses, *next(iter(loop.loader)))


# Interruptions.


class Interrupted:
    """Losses that are interrupted at a call."""

    def __init__(self, loop: Loop, problem: type[BaseException]) -> None:
        self.loop, self.problem, self.left = loop, problem, MANY

    def __call__(self, x: Tensor) -> Tensor:
        self.left -= 1
        if not self.left:
            raise self.problem
        return self.loop.losses(x)


def interrupted(loop: Loop, problem: type[BaseException], then: Callable[[Any, Tensor], None]) -> None:
    losses = Interrupted(loop, problem)
    loop.step.physical_batch_size = 1
    for number, (x,) in enumerate(loop.loader):
        if number == 3:
            losses.left = 2
        with contextlib.suppress(problem):
            loop.step.add(losses, x)
            losses.left = MANY
        if losses.left <= 0:
            losses.left = MANY
            then(losses, x)
        else:
            loop.close()


@right
def repeat_after_an_interrupt(loop: Loop) -> None:
    def again(losses: Any, x: Tensor) -> None:
        loop.step.add(losses, x)
        loop.close()

    interrupted(loop, KeyboardInterrupt, again)


@right
def drop_after_an_interrupt(loop: Loop) -> None:
    interrupted(loop, KeyboardInterrupt, lambda losses, x: loop.step.drop())


@refused
def go_on_after_an_interrupt(loop: Loop) -> None:
    interrupted(loop, KeyboardInterrupt, lambda losses, x: None)


@right
def repeat_where_memory_was_short(loop: Loop) -> None:
    def again(losses: Any, x: Tensor) -> None:
        for part in x.split(1):
            loop.step.add(losses, part)
        loop.close()

    interrupted(loop, MemoryError, again)


@right
def fail_for_one_unit(loop: Loop) -> None:
    def losses(x: Tensor) -> Tensor:
        if bool(x[:, 3].any()) and x.shape[1] == SIZE and float(x.abs().max()) == 1.0:
            raise ValueError("unit 3")
        return loop.losses(x)

    for (x,) in loop.loader:
        loop.step.add(losses, x)
        loop.close()
    assert all(float(each[3]) < 0.01 for _, each in loop.taken)


# The model and its parts.


@right
def load_other_weights(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(x)
        loop.model.load_state_dict({name: value / 2 for name, value in loop.model.state_dict().items()})


@right
def give_parameters_other_data(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(x)
        loop.model.table.weight.data = torch.zeros(1, SIZE)


@right
def replace_a_layer(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(x)
        loop.model.table = nn.Linear(SIZE, 1, bias=False)


@refused
def replace_a_layer_by_batch_norm(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(x)
        loop.model.table = nn.Sequential(nn.BatchNorm1d(SIZE), nn.Linear(SIZE, 1, bias=False))  # type: ignore[assignment]


@refused
def replace_the_forward(loop: Loop) -> None:
    plain = loop.model.forward
    for (x,) in loop.loader:
        loop.take(x)
        loop.model.forward = lambda x: plain(x - x.mean(0))  # type: ignore[method-assign]


@refused
def hook_what_mixes(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(x)
        loop.model.table.register_forward_pre_hook(lambda layer, args: (args[0] + args[0].sum(0),))


@right
def hook_what_scales(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.take(x)
        loop.model.table.register_forward_hook(lambda layer, args, out: 3 * out)


@right
def scale_gradients_by_a_hook(loop: Loop) -> None:
    loop.model.table.weight.register_hook(lambda gradient: 100 * gradient)
    with pytest.warns(UserWarning, match="run alone"):
        loop.train()


@right
def note_activations_by_a_hook(loop: Loop) -> None:
    notes: dict[str, Tensor] = {}
    loop.model.table.register_forward_hook(lambda layer, args, out: notes.update(last=args[0].detach()))
    loop.train()
    assert not notes


@right
def keep_inputs_in_the_model(loop: Loop) -> None:
    def losses(x: Tensor) -> Tensor:
        loop.model.seen.append(x)
        return loop.losses(x)

    for (x,) in loop.loader:
        loop.step.add(losses, x)
        loop.close()
    assert not loop.model.seen


@right
def compile_the_model(loop: Loop) -> None:
    compiled = torch.compile(loop.model, backend="eager")
    loop.step = Step.of(compiled, loop.plan, clipping=Flat(norm=1.0))  # type: ignore[arg-type]
    for (x,) in loop.loader:
        loop.step.add(lambda x: 4 * compiled(x).squeeze(1), x)
        loop.close()


@right
def autocast_from_some_step_on(loop: Loop) -> None:
    for number, (x,) in enumerate(loop.loader):
        with torch.autocast("cpu", torch.bfloat16, enabled=number > 3):
            loop.add(x)
        loop.close()


@right
def scale_the_losses(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.step.add(lambda x: 1024 * loop.losses(x), x)
        loop.close()


@right
def average_the_weights(loop: Loop) -> None:
    average = torch.optim.swa_utils.AveragedModel(loop.model)
    for (x,) in loop.loader:
        loop.take(x)
        average.update_parameters(loop.model)


@refused
def average_the_inputs_in_forward(loop: Loop) -> None:
    def losses(x: Tensor) -> Tensor:
        with torch.no_grad():
            loop.model.table.weight.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return loop.losses(x)

    for (x,) in loop.loader:
        loop.step.add(losses, x)
        loop.close()


@right
def average_the_inputs_in_a_closure(loop: Loop) -> None:
    center = torch.zeros(SIZE)

    def losses(x: Tensor) -> Tensor:
        nonlocal center
        center = 0.9 * center + 0.1 * x.detach().mean(0)
        return loop.losses(x)

    for (x,) in loop.loader:
        loop.step.add(losses, x)
        loop.close()
    assert not center.any()


@right
def freeze_and_unfreeze(loop: Loop) -> None:
    loop.model.more = nn.Linear(1, 1)
    for number, (x,) in enumerate(loop.loader):
        loop.model.more.requires_grad_(number % 2 == 0)
        loop.step.add(lambda x: 4 * loop.model.more(loop.model(x)).squeeze(1), x)
        loop.close()


@refused
def freeze_while_a_batch_is_open(loop: Loop) -> None:
    loop.model.more = nn.Linear(1, 1)
    for (x,) in loop.loader:
        loop.step.add(lambda x: 4 * loop.model.more(loop.model(x)).squeeze(1), x)
        loop.model.more.requires_grad_(False)
        loop.close()


@right
def train_a_generator_beside(loop: Loop) -> None:
    generator = nn.Linear(3, SIZE)
    other = torch.optim.SGD(generator.parameters(), lr=0.1)
    for (x,) in loop.loader:
        loop.take(x)
        other.zero_grad()
        (-loop.model(generator(torch.ones(2, 3))).mean()).backward()
        other.step()
        loop.model.zero_grad()


@refused
def train_a_generator_on_the_same_batches(loop: Loop) -> None:
    generator = nn.Linear(SIZE, SIZE)
    other = Step.of(generator, loop.plan)
    for (x,) in loop.loader:
        loop.take(x)
        other.add(lambda x: loop.model(generator(x)).squeeze(1), x)
        other.close()


@refused
def minimise_by_lbfgs(loop: Loop) -> None:
    optimizer = torch.optim.LBFGS(loop.model.parameters(), max_iter=4)
    for (x,) in loop.loader:

        def closure(x: Tensor = x) -> float:
            loop.add(x)
            loop.step.close()
            return 1.0

        optimizer.step(closure)


@right
def change_optimizer_and_rates(loop: Loop) -> None:
    schedule = torch.optim.lr_scheduler.StepLR(loop.optimizer, 2, 0.5)
    for number, (x,) in enumerate(loop.loader):
        loop.take(x)
        schedule.step()
        if number == 5:
            loop.optimizer = torch.optim.Adam(loop.model.parameters(), lr=0.1)


@right
def evaluate_between_steps(loop: Loop) -> None:
    for (x,) in loop.loader:
        loop.model.train()
        loop.take(x)
        with torch.no_grad():
            loop.model.eval()(UNITS)


@right
def begin_a_second_run(loop: Loop) -> None:
    loop.train()
    first, loop.taken = loop.taken, []
    loop.step, loop.loader = loop.made(), loop.drawn()
    loop.train()
    assert len(first) == len(loop.taken) == loop.plan.steps


CASES = [(case, "right") for case in RIGHT] + [(case, "refused") for case in REFUSED]


@pytest.mark.parametrize(("case", "outcome"), CASES, ids=[case.__name__ for case, _ in CASES])
def test_a_loop_counts_each_unit_as_drawn_or_is_refused(
    case: Case, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, found = Loop(monkeypatch), "right"
    try:
        case(loop)
    except (SourdineError, AttributeError):
        found = "refused"
    assert found == outcome
    loop.check(whole=False)


def test_a_second_run_of_a_plan_is_paid_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    loop = Loop(monkeypatch, noise_multiplier=1.0)
    ledger = Ledger.create(tmp_path / "l", order=4, divergence=1e4, delta=1e-3)
    for paid in (1, 2):
        loop.step, loop.loader = loop.made(ledger=ledger), loop.drawn()
        loop.train()
        assert ledger.status().blocks == paid


def test_the_suite_has_sixty_loops() -> None:
    assert len(CASES) >= 60
