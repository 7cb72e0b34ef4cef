from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATE_UNSPECIFIED: _ClassVar[TaskState]
    TASK_STATE_PLANNED: _ClassVar[TaskState]
    TASK_STATE_BLOCKED: _ClassVar[TaskState]
    TASK_STATE_READY: _ClassVar[TaskState]
    TASK_STATE_QUEUED: _ClassVar[TaskState]
    TASK_STATE_DISPATCHED: _ClassVar[TaskState]
    TASK_STATE_RUNNING: _ClassVar[TaskState]
    TASK_STATE_RETRY_WAIT: _ClassVar[TaskState]
    TASK_STATE_SUCCEEDED: _ClassVar[TaskState]
    TASK_STATE_FAILED: _ClassVar[TaskState]
    TASK_STATE_SKIPPED: _ClassVar[TaskState]
    TASK_STATE_CANCELLED: _ClassVar[TaskState]

class RunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATE_UNSPECIFIED: _ClassVar[RunState]
    RUN_STATE_PENDING: _ClassVar[RunState]
    RUN_STATE_RUNNING: _ClassVar[RunState]
    RUN_STATE_PAUSED: _ClassVar[RunState]
    RUN_STATE_CANCELLING: _ClassVar[RunState]
    RUN_STATE_SUCCEEDED: _ClassVar[RunState]
    RUN_STATE_FAILED: _ClassVar[RunState]
    RUN_STATE_CANCELLED: _ClassVar[RunState]
    RUN_STATE_TIMED_OUT: _ClassVar[RunState]

class TransitionReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRANSITION_REASON_UNSPECIFIED: _ClassVar[TransitionReason]
    TRANSITION_REASON_RUN_STARTED: _ClassVar[TransitionReason]
    TRANSITION_REASON_DEPENDENCIES_SATISFIED: _ClassVar[TransitionReason]
    TRANSITION_REASON_ENQUEUED_FOR_DISPATCH: _ClassVar[TransitionReason]
    TRANSITION_REASON_DISPATCHED_TO_WORKER: _ClassVar[TransitionReason]
    TRANSITION_REASON_EXECUTION_STARTED: _ClassVar[TransitionReason]
    TRANSITION_REASON_EXECUTION_SUCCEEDED: _ClassVar[TransitionReason]
    TRANSITION_REASON_EXECUTION_FAILED: _ClassVar[TransitionReason]
    TRANSITION_REASON_TIMED_OUT: _ClassVar[TransitionReason]
    TRANSITION_REASON_HEARTBEAT_TIMEOUT: _ClassVar[TransitionReason]
    TRANSITION_REASON_DISPATCH_ACK_TIMEOUT: _ClassVar[TransitionReason]
    TRANSITION_REASON_RETRY_SCHEDULED: _ClassVar[TransitionReason]
    TRANSITION_REASON_RETRY_TIMER_EXPIRED: _ClassVar[TransitionReason]
    TRANSITION_REASON_INTERRUPTED: _ClassVar[TransitionReason]
    TRANSITION_REASON_USER_CANCELLED: _ClassVar[TransitionReason]
    TRANSITION_REASON_SYSTEM_CANCELLED: _ClassVar[TransitionReason]
    TRANSITION_REASON_RUN_CANCELLED: _ClassVar[TransitionReason]
    TRANSITION_REASON_UPSTREAM_CANCELLED: _ClassVar[TransitionReason]
    TRANSITION_REASON_FORCE_CANCELLED: _ClassVar[TransitionReason]
    TRANSITION_REASON_LATE_RESULT: _ClassVar[TransitionReason]
    TRANSITION_REASON_UPSTREAM_NOT_SUCCEEDED: _ClassVar[TransitionReason]
    TRANSITION_REASON_UPSTREAM_QUARANTINED: _ClassVar[TransitionReason]
    TRANSITION_REASON_SKIPPED_BY_USER_CODE: _ClassVar[TransitionReason]
    TRANSITION_REASON_UP_TO_DATE: _ClassVar[TransitionReason]
    TRANSITION_REASON_CHECK_FAILED: _ClassVar[TransitionReason]
    TRANSITION_REASON_MAPPED: _ClassVar[TransitionReason]
    TRANSITION_REASON_CHILDREN_ENDED: _ClassVar[TransitionReason]
    TRANSITION_REASON_CANCEL_REQUESTED: _ClassVar[TransitionReason]
    TRANSITION_REASON_OUTPUT_WITHHELD: _ClassVar[TransitionReason]
    TRANSITION_REASON_RUN_CREATED: _ClassVar[TransitionReason]
    TRANSITION_REASON_PLAN_FAILED: _ClassVar[TransitionReason]
    TRANSITION_REASON_ALL_TASKS_SUCCEEDED: _ClassVar[TransitionReason]
    TRANSITION_REASON_TASKS_FAILED: _ClassVar[TransitionReason]
    TRANSITION_REASON_RUN_TIMED_OUT: _ClassVar[TransitionReason]
    TRANSITION_REASON_PAUSED: _ClassVar[TransitionReason]
    TRANSITION_REASON_RESUMED: _ClassVar[TransitionReason]
    TRANSITION_REASON_TASKS_CANCELLED: _ClassVar[TransitionReason]

class InputShape(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INPUT_SHAPE_UNSPECIFIED: _ClassVar[InputShape]
    INPUT_SHAPE_WHOLE: _ClassVar[InputShape]
    INPUT_SHAPE_ONE: _ClassVar[InputShape]
    INPUT_SHAPE_SEVERAL: _ClassVar[InputShape]

class Operation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_UNSPECIFIED: _ClassVar[Operation]
    OPERATION_MATERIALIZE: _ClassVar[Operation]
    OPERATION_CHECK: _ClassVar[Operation]
    OPERATION_EVALUATE: _ClassVar[Operation]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_SUCCEEDED: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]
    OUTCOME_SKIPPED: _ClassVar[Outcome]
    OUTCOME_CANCELLED: _ClassVar[Outcome]
    OUTCOME_INTERRUPTED: _ClassVar[Outcome]

class ErrorCategory(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CATEGORY_UNSPECIFIED: _ClassVar[ErrorCategory]
    ERROR_CATEGORY_TRANSIENT: _ClassVar[ErrorCategory]
    ERROR_CATEGORY_INFRASTRUCTURE: _ClassVar[ErrorCategory]
    ERROR_CATEGORY_TIMEOUT: _ClassVar[ErrorCategory]
    ERROR_CATEGORY_USER_CODE: _ClassVar[ErrorCategory]
    ERROR_CATEGORY_INPUT: _ClassVar[ErrorCategory]
    ERROR_CATEGORY_CONFIGURATION: _ClassVar[ErrorCategory]

class MaterializationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MATERIALIZATION_STATE_UNSPECIFIED: _ClassVar[MaterializationState]
    MATERIALIZATION_STATE_STAGED: _ClassVar[MaterializationState]
    MATERIALIZATION_STATE_COMMITTED: _ClassVar[MaterializationState]
    MATERIALIZATION_STATE_PROMOTED: _ClassVar[MaterializationState]
    MATERIALIZATION_STATE_QUARANTINED: _ClassVar[MaterializationState]
    MATERIALIZATION_STATE_REJECTED: _ClassVar[MaterializationState]

class DispatchMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISPATCH_MODE_UNSPECIFIED: _ClassVar[DispatchMode]
    DISPATCH_MODE_PULL: _ClassVar[DispatchMode]
    DISPATCH_MODE_PUSH: _ClassVar[DispatchMode]

class QuarantineDecision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUARANTINE_DECISION_UNSPECIFIED: _ClassVar[QuarantineDecision]
    QUARANTINE_DECISION_APPROVE: _ClassVar[QuarantineDecision]
    QUARANTINE_DECISION_REJECT: _ClassVar[QuarantineDecision]

class Acceptance(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCEPTANCE_UNSPECIFIED: _ClassVar[Acceptance]
    ACCEPTANCE_FOLDED: _ClassVar[Acceptance]
    ACCEPTANCE_RECORDED: _ClassVar[Acceptance]
    ACCEPTANCE_DUPLICATE: _ClassVar[Acceptance]
    ACCEPTANCE_LATE: _ClassVar[Acceptance]
    ACCEPTANCE_REFUSED: _ClassVar[Acceptance]
TASK_STATE_UNSPECIFIED: TaskState
TASK_STATE_PLANNED: TaskState
TASK_STATE_BLOCKED: TaskState
TASK_STATE_READY: TaskState
TASK_STATE_QUEUED: TaskState
TASK_STATE_DISPATCHED: TaskState
TASK_STATE_RUNNING: TaskState
TASK_STATE_RETRY_WAIT: TaskState
TASK_STATE_SUCCEEDED: TaskState
TASK_STATE_FAILED: TaskState
TASK_STATE_SKIPPED: TaskState
TASK_STATE_CANCELLED: TaskState
RUN_STATE_UNSPECIFIED: RunState
RUN_STATE_PENDING: RunState
RUN_STATE_RUNNING: RunState
RUN_STATE_PAUSED: RunState
RUN_STATE_CANCELLING: RunState
RUN_STATE_SUCCEEDED: RunState
RUN_STATE_FAILED: RunState
RUN_STATE_CANCELLED: RunState
RUN_STATE_TIMED_OUT: RunState
TRANSITION_REASON_UNSPECIFIED: TransitionReason
TRANSITION_REASON_RUN_STARTED: TransitionReason
TRANSITION_REASON_DEPENDENCIES_SATISFIED: TransitionReason
TRANSITION_REASON_ENQUEUED_FOR_DISPATCH: TransitionReason
TRANSITION_REASON_DISPATCHED_TO_WORKER: TransitionReason
TRANSITION_REASON_EXECUTION_STARTED: TransitionReason
TRANSITION_REASON_EXECUTION_SUCCEEDED: TransitionReason
TRANSITION_REASON_EXECUTION_FAILED: TransitionReason
TRANSITION_REASON_TIMED_OUT: TransitionReason
TRANSITION_REASON_HEARTBEAT_TIMEOUT: TransitionReason
TRANSITION_REASON_DISPATCH_ACK_TIMEOUT: TransitionReason
TRANSITION_REASON_RETRY_SCHEDULED: TransitionReason
TRANSITION_REASON_RETRY_TIMER_EXPIRED: TransitionReason
TRANSITION_REASON_INTERRUPTED: TransitionReason
TRANSITION_REASON_USER_CANCELLED: TransitionReason
TRANSITION_REASON_SYSTEM_CANCELLED: TransitionReason
TRANSITION_REASON_RUN_CANCELLED: TransitionReason
TRANSITION_REASON_UPSTREAM_CANCELLED: TransitionReason
TRANSITION_REASON_FORCE_CANCELLED: TransitionReason
TRANSITION_REASON_LATE_RESULT: TransitionReason
TRANSITION_REASON_UPSTREAM_NOT_SUCCEEDED: TransitionReason
TRANSITION_REASON_UPSTREAM_QUARANTINED: TransitionReason
TRANSITION_REASON_SKIPPED_BY_USER_CODE: TransitionReason
TRANSITION_REASON_UP_TO_DATE: TransitionReason
TRANSITION_REASON_CHECK_FAILED: TransitionReason
TRANSITION_REASON_MAPPED: TransitionReason
TRANSITION_REASON_CHILDREN_ENDED: TransitionReason
TRANSITION_REASON_CANCEL_REQUESTED: TransitionReason
TRANSITION_REASON_OUTPUT_WITHHELD: TransitionReason
TRANSITION_REASON_RUN_CREATED: TransitionReason
TRANSITION_REASON_PLAN_FAILED: TransitionReason
TRANSITION_REASON_ALL_TASKS_SUCCEEDED: TransitionReason
TRANSITION_REASON_TASKS_FAILED: TransitionReason
TRANSITION_REASON_RUN_TIMED_OUT: TransitionReason
TRANSITION_REASON_PAUSED: TransitionReason
TRANSITION_REASON_RESUMED: TransitionReason
TRANSITION_REASON_TASKS_CANCELLED: TransitionReason
INPUT_SHAPE_UNSPECIFIED: InputShape
INPUT_SHAPE_WHOLE: InputShape
INPUT_SHAPE_ONE: InputShape
INPUT_SHAPE_SEVERAL: InputShape
OPERATION_UNSPECIFIED: Operation
OPERATION_MATERIALIZE: Operation
OPERATION_CHECK: Operation
OPERATION_EVALUATE: Operation
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_SUCCEEDED: Outcome
OUTCOME_FAILED: Outcome
OUTCOME_SKIPPED: Outcome
OUTCOME_CANCELLED: Outcome
OUTCOME_INTERRUPTED: Outcome
ERROR_CATEGORY_UNSPECIFIED: ErrorCategory
ERROR_CATEGORY_TRANSIENT: ErrorCategory
ERROR_CATEGORY_INFRASTRUCTURE: ErrorCategory
ERROR_CATEGORY_TIMEOUT: ErrorCategory
ERROR_CATEGORY_USER_CODE: ErrorCategory
ERROR_CATEGORY_INPUT: ErrorCategory
ERROR_CATEGORY_CONFIGURATION: ErrorCategory
MATERIALIZATION_STATE_UNSPECIFIED: MaterializationState
MATERIALIZATION_STATE_STAGED: MaterializationState
MATERIALIZATION_STATE_COMMITTED: MaterializationState
MATERIALIZATION_STATE_PROMOTED: MaterializationState
MATERIALIZATION_STATE_QUARANTINED: MaterializationState
MATERIALIZATION_STATE_REJECTED: MaterializationState
DISPATCH_MODE_UNSPECIFIED: DispatchMode
DISPATCH_MODE_PULL: DispatchMode
DISPATCH_MODE_PUSH: DispatchMode
QUARANTINE_DECISION_UNSPECIFIED: QuarantineDecision
QUARANTINE_DECISION_APPROVE: QuarantineDecision
QUARANTINE_DECISION_REJECT: QuarantineDecision
ACCEPTANCE_UNSPECIFIED: Acceptance
ACCEPTANCE_FOLDED: Acceptance
ACCEPTANCE_RECORDED: Acceptance
ACCEPTANCE_DUPLICATE: Acceptance
ACCEPTANCE_LATE: Acceptance
ACCEPTANCE_REFUSED: Acceptance
