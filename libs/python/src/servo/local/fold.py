"""How tasks move: ``services/scheduler/src/core``, as far as it goes without workers, leases and cancelling.

The scenario files under ``tests/scenarios`` tell both the same stories.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from servo.model.categories import ErrorCategory
from servo.model.ids import attempt_id, dispatch_id
from servo.model.retry import RetryPolicy
from servo.model.task_key import TaskKey

# A task that was given back is offered again after this.
_GIVEN_BACK_MS = 1_000


class TaskState(Enum):
    BLOCKED = "BLOCKED"
    READY = "READY"
    RUNNING = "RUNNING"
    RETRY_WAIT = "RETRY_WAIT"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        return self in _TERMINAL


_TERMINAL = frozenset({TaskState.SUCCEEDED, TaskState.FAILED, TaskState.SKIPPED, TaskState.CANCELLED})


class RunState(Enum):
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Succeeded:
    # How many items it yields, when it does.
    items: int = 0
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class SkippedItself:
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CheckFailed:
    message: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    category: ErrorCategory
    message: str = ""
    error_type: str = ""
    retriable: bool | None = None


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Given back: no failure."""


Outcome = Succeeded | SkippedItself | CheckFailed | Failed | Interrupted


class Slot(NamedTuple):
    """A task by its place in the plan, or one child of a mapped task."""

    ordinal: int
    item: int | None = None


@dataclass(frozen=True, slots=True)
class FoldTask:
    key: TaskKey
    upstream: tuple[int, ...]
    mapped_over: int | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(slots=True)
class Cell:
    state: TaskState
    reason: str
    attempt: int = 0
    attempt_id: str = ""
    failures: int = 0
    # How long a task in RETRY_WAIT waits.
    delay_ms: int = 0


@dataclass(slots=True)
class Run:
    run_id: str
    tasks: Sequence[FoldTask]
    cells: dict[Slot, Cell] = field(default_factory=dict)
    # Of the failed task that stands first in the plan: its place, its key and what it said.
    error: tuple[int, str] | None = None
    _items: dict[int, int] = field(default_factory=dict)
    _quarantined: set[int] = field(default_factory=set)
    _waiters: dict[int, list[int]] = field(default_factory=dict)
    # How upstreams and children ended, as counts: one end costs the same for a join of ten thousand as for a chain.
    _upstreams: dict[int, Counter[TaskState]] = field(default_factory=dict)
    _children: dict[int, Counter[TaskState]] = field(default_factory=dict)
    _counts: Counter[TaskState] = field(default_factory=Counter)
    _ready: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for ordinal, task in enumerate(self.tasks):
            self._create(Slot(ordinal), TaskState.BLOCKED, "RUN_STARTED")
            self._upstreams[ordinal] = Counter()
            for upstream in task.upstream:
                self._waiters.setdefault(upstream, []).append(ordinal)
        for ordinal, task in enumerate(self.tasks):
            if not task.upstream:
                self._step(Slot(ordinal), TaskState.READY, "DEPENDENCIES_SATISFIED")

    @property
    def state(self) -> RunState:
        if any(count for state, count in self._counts.items() if not state.is_terminal):
            return RunState.RUNNING
        return RunState.FAILED if self._counts[TaskState.FAILED] else RunState.SUCCEEDED

    def ready(self) -> Slot | None:
        """The first task that may start."""
        while self._ready:
            ordinal, item = self._ready[0]
            slot = Slot(ordinal, None if item < 0 else item)
            if self.cells[slot].state is TaskState.READY:
                return slot
            heapq.heappop(self._ready)
        return None

    def waiting(self) -> Slot | None:
        """The task whose next try is due first."""
        slots = [slot for slot, cell in self.cells.items() if cell.state is TaskState.RETRY_WAIT]
        return min(slots, key=lambda slot: (self.cells[slot].delay_ms, _place(slot)), default=None)

    def start(self, slot: Slot) -> Cell:
        cell = self.cells[slot]
        cell.attempt += 1
        cell.attempt_id = attempt_id(dispatch_id(self.run_id, str(self.key(slot)), cell.attempt))
        self._step(slot, TaskState.RUNNING, "EXECUTION_STARTED")
        return cell

    def retry_due(self, slot: Slot) -> None:
        self._step(slot, TaskState.READY, "RETRY_TIMER_EXPIRED")

    def key(self, slot: Slot) -> TaskKey:
        key = self.tasks[slot.ordinal].key
        return key if slot.item is None else key.child(slot.item)

    def finish(self, slot: Slot, outcome: Outcome) -> None:
        match outcome:
            case Succeeded(items, quarantined):
                if slot.item is None:
                    self._items[slot.ordinal] = items
                if quarantined:
                    self._quarantined.add(slot.ordinal)
                self._step(slot, TaskState.SUCCEEDED, "EXECUTION_SUCCEEDED")
            case SkippedItself():
                self._step(slot, TaskState.SKIPPED, "SKIPPED_BY_USER_CODE")
            case CheckFailed(message):
                self._fail(slot, "CHECK_FAILED", message)
            case Interrupted():
                self._wait(slot, "INTERRUPTED", _GIVEN_BACK_MS)
            case Failed() as failed:
                self._failed(slot, failed)
        self._settle(slot)

    def _failed(self, slot: Slot, failed: Failed) -> None:
        cell = self.cells[slot]
        cell.failures += 1
        policy = self.tasks[slot.ordinal].retry
        delay = policy.after_failure(
            cell.failures, failed.category, cell.attempt_id, failed.error_type, failed.retriable
        )
        timed_out = failed.category is ErrorCategory.TIMEOUT
        if delay is not None:
            self._wait(slot, "TIMED_OUT" if timed_out else "RETRY_SCHEDULED", delay)
        else:
            self._fail(slot, "TIMED_OUT" if timed_out else "EXECUTION_FAILED", failed.message)

    def _fail(self, slot: Slot, reason: str, message: str) -> None:
        self._step(slot, TaskState.FAILED, reason)
        error = slot.ordinal, f"{self.key(slot)}: {message}"
        # Of several the least is told, so that the order in which tasks fail does not show.
        self.error = error if self.error is None else min(error, self.error)

    def _wait(self, slot: Slot, reason: str, delay_ms: int) -> None:
        self._step(slot, TaskState.RETRY_WAIT, reason)
        self.cells[slot].delay_ms = delay_ms

    def _step(self, slot: Slot, state: TaskState, reason: str) -> None:
        cell = self.cells[slot]
        self._counts[cell.state] -= 1
        self._counts[state] += 1
        cell.state, cell.reason = state, reason
        if state is TaskState.READY:
            heapq.heappush(self._ready, _place(slot))

    def _create(self, slot: Slot, state: TaskState, reason: str) -> None:
        self.cells[slot] = Cell(state, reason)
        self._counts[state] += 1
        if state is TaskState.READY:
            heapq.heappush(self._ready, _place(slot))

    def _settle(self, first: Slot) -> None:
        """Tells everybody who waits for this task, and for those that end by it, and so on; without recursion."""
        ended = [first]
        while ended:
            slot = ended.pop()
            state = self.cells[slot].state
            if not state.is_terminal:
                continue
            if slot.item is not None:
                self._children[slot.ordinal][state] += 1
                ended.extend(self._settle_children(slot.ordinal))
                continue
            for waiter in self._waiters.get(slot.ordinal, ()):
                self._upstreams[waiter][state] += 1
                ended.extend(self._settle_waiter(waiter))

    def _settle_waiter(self, ordinal: int) -> list[Slot]:
        slot, task = Slot(ordinal), self.tasks[ordinal]
        if self.cells[slot].state is not TaskState.BLOCKED or ordinal in self._children:
            return []
        states = self._upstreams[ordinal]
        # A failed or skipped upstream decides at once, because nothing the others do can outweigh it.
        if states[TaskState.FAILED] or states[TaskState.SKIPPED]:
            self._step(slot, TaskState.SKIPPED, "UPSTREAM_NOT_SUCCEEDED")
            return [slot]
        if states[TaskState.SUCCEEDED] < len(task.upstream):
            return []
        if self._quarantined.intersection(task.upstream):
            self._step(slot, TaskState.SKIPPED, "UPSTREAM_QUARANTINED")
            return [slot]
        if task.mapped_over is not None:
            return self._map(ordinal, self._items.get(task.mapped_over, 0))
        self._step(slot, TaskState.READY, "DEPENDENCIES_SATISFIED")
        return []

    def _map(self, parent: int, count: int) -> list[Slot]:
        """Makes a child for every item. Without items there is nothing to do, which is done."""
        if count == 0:
            self._step(Slot(parent), TaskState.SUCCEEDED, "CHILDREN_ENDED")
            return [Slot(parent)]
        self._children[parent] = Counter()
        for item in range(count):
            self._create(Slot(parent, item), TaskState.READY, "MAPPED")
        return []

    def _settle_children(self, parent: int) -> list[Slot]:
        states = self._children[parent]
        over = self.tasks[parent].mapped_over
        if over is None or states.total() < self._items[over]:
            return []
        if states[TaskState.FAILED]:
            state = TaskState.FAILED
        elif states[TaskState.SKIPPED]:
            state = TaskState.SKIPPED
        else:
            state = TaskState.SUCCEEDED
        self._step(Slot(parent), state, "CHILDREN_ENDED")
        return [Slot(parent)]


def _place(slot: Slot) -> tuple[int, int]:
    return slot.ordinal, -1 if slot.item is None else slot.item
