"""The states of tasks: ``services/scheduler/src/core`` without workers, leases and cancelling.

The scenario files under ``tests/scenarios`` test both implementations.
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

# The delay before an interrupted task is offered again.
_INTERRUPTED_DELAY_MS = 1_000


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
    # The number of items, if the asset yields items.
    items: int = 0
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
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
    """The attempt was returned, which does not count as a failure."""


Outcome = Succeeded | Skipped | CheckFailed | Failed | Interrupted


class TaskRef(NamedTuple):
    """The address of a task in its run: its ordinal and, for a mapped task, its map index."""

    ordinal: int
    item: int | None = None


@dataclass(frozen=True, slots=True)
class FoldTask:
    key: TaskKey
    upstream: tuple[int, ...]
    mapped_over: int | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(slots=True)
class TaskRow:
    state: TaskState
    reason: str
    attempt: int = 0
    attempt_id: str = ""
    failures: int = 0
    # The delay of a task in RETRY_WAIT.
    delay_ms: int = 0


@dataclass(slots=True)
class Run:
    run_id: str
    tasks: Sequence[FoldTask]
    rows: dict[TaskRef, TaskRow] = field(default_factory=dict)
    # The ordinal of the first failed task in plan order, and the text of its error.
    error: tuple[int, str] | None = None
    _items: dict[int, int] = field(default_factory=dict)
    _quarantined: set[int] = field(default_factory=set)
    _waiters: dict[int, list[int]] = field(default_factory=dict)
    # Final states of upstreams and children, as counts, so that the end of a task costs the same in
    # a join of ten thousand tasks as in a chain.
    _upstreams: dict[int, Counter[TaskState]] = field(default_factory=dict)
    _children: dict[int, Counter[TaskState]] = field(default_factory=dict)
    _counts: Counter[TaskState] = field(default_factory=Counter)
    _ready: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for ordinal, task in enumerate(self.tasks):
            self._create(TaskRef(ordinal), TaskState.BLOCKED, "RUN_STARTED")
            self._upstreams[ordinal] = Counter()
            for upstream in task.upstream:
                self._waiters.setdefault(upstream, []).append(ordinal)
        for ordinal, task in enumerate(self.tasks):
            if not task.upstream:
                self._step(TaskRef(ordinal), TaskState.READY, "DEPENDENCIES_SATISFIED")

    @property
    def state(self) -> RunState:
        if any(count for state, count in self._counts.items() if not state.is_terminal):
            return RunState.RUNNING
        return RunState.FAILED if self._counts[TaskState.FAILED] else RunState.SUCCEEDED

    def ready(self) -> TaskRef | None:
        """The first task that is ready."""
        while self._ready:
            ordinal, item = self._ready[0]
            ref = TaskRef(ordinal, None if item < 0 else item)
            if self.rows[ref].state is TaskState.READY:
                return ref
            heapq.heappop(self._ready)
        return None

    def waiting(self) -> TaskRef | None:
        """The task whose retry is due first."""
        slots = [ref for ref, row in self.rows.items() if row.state is TaskState.RETRY_WAIT]
        return min(slots, key=lambda ref: (self.rows[ref].delay_ms, _place(ref)), default=None)

    def start(self, ref: TaskRef) -> TaskRow:
        row = self.rows[ref]
        row.attempt += 1
        row.attempt_id = attempt_id(dispatch_id(self.run_id, str(self.key(ref)), row.attempt))
        self._step(ref, TaskState.RUNNING, "EXECUTION_STARTED")
        return row

    def retry_due(self, ref: TaskRef) -> None:
        self._step(ref, TaskState.READY, "RETRY_TIMER_EXPIRED")

    def key(self, ref: TaskRef) -> TaskKey:
        key = self.tasks[ref.ordinal].key
        return key if ref.item is None else key.child(ref.item)

    def finish(self, ref: TaskRef, outcome: Outcome) -> None:
        match outcome:
            case Succeeded(items, quarantined):
                if ref.item is None:
                    self._items[ref.ordinal] = items
                if quarantined:
                    self._quarantined.add(ref.ordinal)
                self._step(ref, TaskState.SUCCEEDED, "EXECUTION_SUCCEEDED")
            case Skipped():
                self._step(ref, TaskState.SKIPPED, "SKIPPED_BY_USER_CODE")
            case CheckFailed(message):
                self._fail(ref, "CHECK_FAILED", message)
            case Interrupted():
                self._wait(ref, "INTERRUPTED", _INTERRUPTED_DELAY_MS)
            case Failed() as failed:
                self._failed(ref, failed)
        self._settle(ref)

    def _failed(self, ref: TaskRef, failed: Failed) -> None:
        row = self.rows[ref]
        row.failures += 1
        policy = self.tasks[ref.ordinal].retry
        delay = policy.after_failure(row.failures, failed.category, row.attempt_id, failed.error_type, failed.retriable)
        timed_out = failed.category is ErrorCategory.TIMEOUT
        if delay is not None:
            self._wait(ref, "TIMED_OUT" if timed_out else "RETRY_SCHEDULED", delay)
        else:
            self._fail(ref, "TIMED_OUT" if timed_out else "EXECUTION_FAILED", failed.message)

    def _fail(self, ref: TaskRef, reason: str, message: str) -> None:
        self._step(ref, TaskState.FAILED, reason)
        error = ref.ordinal, f"{self.key(ref)}: {message}"
        # The least error wins, so that the result does not depend on the order of failures.
        self.error = error if self.error is None else min(error, self.error)

    def _wait(self, ref: TaskRef, reason: str, delay_ms: int) -> None:
        self._step(ref, TaskState.RETRY_WAIT, reason)
        self.rows[ref].delay_ms = delay_ms

    def _step(self, ref: TaskRef, state: TaskState, reason: str) -> None:
        row = self.rows[ref]
        self._counts[row.state] -= 1
        self._counts[state] += 1
        row.state, row.reason = state, reason
        if state is TaskState.READY:
            heapq.heappush(self._ready, _place(ref))

    def _create(self, ref: TaskRef, state: TaskState, reason: str) -> None:
        self.rows[ref] = TaskRow(state, reason)
        self._counts[state] += 1
        if state is TaskState.READY:
            heapq.heappush(self._ready, _place(ref))

    def _settle(self, first: TaskRef) -> None:
        """Updates all tasks that wait for this one, and those that wait for them; iteratively,
        because chains can be long.
        """
        ended = [first]
        while ended:
            ref = ended.pop()
            state = self.rows[ref].state
            if not state.is_terminal:
                continue
            if ref.item is not None:
                self._children[ref.ordinal][state] += 1
                ended.extend(self._settle_children(ref.ordinal))
                continue
            for waiter in self._waiters.get(ref.ordinal, ()):
                self._upstreams[waiter][state] += 1
                ended.extend(self._settle_waiter(waiter))

    def _settle_waiter(self, ordinal: int) -> list[TaskRef]:
        ref, task = TaskRef(ordinal), self.tasks[ordinal]
        if self.rows[ref].state is not TaskState.BLOCKED or ordinal in self._children:
            return []
        states = self._upstreams[ordinal]
        # A failed or skipped upstream decides at once, because the other upstreams cannot change
        # the result.
        if states[TaskState.FAILED] or states[TaskState.SKIPPED]:
            self._step(ref, TaskState.SKIPPED, "UPSTREAM_NOT_SUCCEEDED")
            return [ref]
        if states[TaskState.SUCCEEDED] < len(task.upstream):
            return []
        if self._quarantined.intersection(task.upstream):
            self._step(ref, TaskState.SKIPPED, "UPSTREAM_QUARANTINED")
            return [ref]
        if task.mapped_over is not None:
            return self._map(ordinal, self._items.get(task.mapped_over, 0))
        self._step(ref, TaskState.READY, "DEPENDENCIES_SATISFIED")
        return []

    def _map(self, parent: int, count: int) -> list[TaskRef]:
        """Creates a mapped task for every item. A mapped parent without items succeeds at once."""
        if count == 0:
            self._step(TaskRef(parent), TaskState.SUCCEEDED, "CHILDREN_ENDED")
            return [TaskRef(parent)]
        self._children[parent] = Counter()
        for item in range(count):
            self._create(TaskRef(parent, item), TaskState.READY, "MAPPED")
        return []

    def _settle_children(self, parent: int) -> list[TaskRef]:
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
        self._step(TaskRef(parent), state, "CHILDREN_ENDED")
        return [TaskRef(parent)]


def _place(ref: TaskRef) -> tuple[int, int]:
    return ref.ordinal, -1 if ref.item is None else ref.item
