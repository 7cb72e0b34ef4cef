"""The reports of one attempt: start, heartbeats, logs and outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from servo.v1 import callback_pb2, error_pb2, state_pb2, worker_pb2

from . import logs
from .child import Stream
from .outcome import Finish
from .redaction import Redactor
from .reports import TakesAnswer, TakesReports

_LOGS_EVERY = 1.0
_FINAL_REASONS = (
    error_pb2.ERROR_REASON_STALE_ATTEMPT,
    error_pb2.ERROR_REASON_ATTEMPT_UNKNOWN,
    error_pb2.ERROR_REASON_ATTEMPT_CANCELLED,
    error_pb2.ERROR_REASON_ALREADY_STARTED,
)


class AttemptReports:
    """Fills in the identity of the attempt, and calls ``cancel`` when the server has given it up."""

    def __init__(
        self,
        envelope: worker_pb2.TaskEnvelope,
        *,
        worker_id: str,
        session: str,
        reports: TakesReports,
        redact: Redactor,
        cancel: Callable[[], None],
    ) -> None:
        self._envelope, self._worker_id, self._session = envelope, worker_id, session
        self._reports, self._redact, self._cancel = reports, redact, cancel
        self._paths = callback_pb2.RenewedPaths(heartbeat=envelope.callbacks.heartbeat, logs=envelope.callbacks.logs)
        self._lines = logs.LogBuffer()
        self._batches = 0
        self._batch_in_flight = False

    def start_request(self) -> callback_pb2.StartAttemptRequest:
        """Reports that the attempt has started, or asks whether it may start."""
        start = callback_pb2.StartAttemptRequest(task=self._envelope.task, worker_id=self._worker_id)
        start.mode = self._envelope.mode or state_pb2.DISPATCH_MODE_PULL
        self._report_heartbeat_timeout(start)
        self._about(start)
        return start

    def renew(self, renewed: callback_pb2.RenewedPaths) -> None:
        """Replaces the presigned paths by fresh ones."""
        if renewed.heartbeat:
            self._paths = renewed

    async def run(self, started: Timestamp, sample_memory: Callable[[], None]) -> None:
        """Reports the start, then heartbeats and logs. Runs until it is cancelled."""
        # A pushed attempt has asked before it started.
        if self._envelope.mode != state_pb2.DISPATCH_MODE_PUSH:
            start = self.start_request()
            start.start_time.CopyFrom(started)
            self._send(self._envelope.callbacks.start, start=start)
        interval = self._envelope.heartbeat_interval
        every = interval.seconds + interval.nanos / 1e9 or 30.0
        beat_at = time.monotonic() + every
        while True:
            await asyncio.sleep(min(_LOGS_EVERY, every))
            self._report_logs()
            sample_memory()
            if time.monotonic() >= beat_at:
                beat_at += every
                beat = callback_pb2.HeartbeatRequest(task=self._envelope.task)
                self._report_heartbeat_timeout(beat)
                self._about(beat)
                self._send(self._paths.heartbeat, heartbeat=beat)

    def finish(self, finish: Finish, started: Timestamp) -> None:
        """Sends the remaining logs, then the outcome."""
        while self._lines:
            self._send_logs()
        self._about(finish)
        finish.task.CopyFrom(self._envelope.task)
        finish.worker_id = self._worker_id
        finish.start_time.CopyFrom(started)
        finish.end_time.CopyFrom(now())
        self._send(self._envelope.callbacks.finished, finish=finish)

    def _report_logs(self) -> None:
        """One batch at a time: while the server is unreachable, lines beyond the buffer are dropped and counted."""
        if self._lines and not self._batch_in_flight:
            self._batch_in_flight = True
            self._send_logs()

    def _send_logs(self) -> None:
        batch = self._lines.take()
        self._batches += 1
        batch.sequence = self._batches
        self._about(batch)
        self._send(self._paths.logs, self._logs_answered, logs=batch)

    def take_line(self, stream: Stream, line: str) -> None:
        self._keep_line(f"LOG_STREAM_{stream}", line)

    def take_record(self, record: dict[str, Any]) -> None:
        """A record of the logger that user code got."""
        redacted = ((self._redact(key), self._redact(text)) for key, text in record["fields"].items())
        fields = {key: text[: logs.FIELD_CHARS_MAX] for key, text in redacted}
        self._keep_line("LOG_STREAM_LOGGER", record["text"], f"LOG_LEVEL_{record['level']}", fields)

    def _keep_line(
        self, stream: str, line: str, level: str | None = None, fields: dict[str, str] | None = None
    ) -> None:
        if self._lines.full:
            self._lines.drop()
            return
        redacted = self._redact.cut_off(line) if logs.is_cut(line) else self._redact(line)
        text = redacted[: logs.LINE_CHARS_MAX]
        self._lines.add(callback_pb2.LogLine(time=now(), stream=stream, level=level or None, text=text, fields=fields))

    def _about(self, call: Any) -> None:
        """Sets the fields that identify the attempt."""
        envelope = self._envelope
        call.tenant, call.workspace, call.run_id = envelope.tenant, envelope.workspace, envelope.run_id
        call.attempt_id, call.session = envelope.attempt_id, self._session

    def _report_heartbeat_timeout(self, call: callback_pb2.StartAttemptRequest | callback_pb2.HeartbeatRequest) -> None:
        """Repeats the envelope's timeout, because signatures are renewed for that time."""
        if self._envelope.timeouts.HasField("heartbeat"):
            call.heartbeat_timeout.CopyFrom(self._envelope.timeouts.heartbeat)

    def _send(self, presigned: str, answered: TakesAnswer | None = None, **call: Any) -> None:
        item = callback_pb2.CallbackItem(presigned=presigned, **call)
        self._reports.send(item, answered or self._answered, self._envelope.callbacks.finished)

    def _logs_answered(self, answer: callback_pb2.CallbackResult) -> None:
        self._answered(answer)
        self._batch_in_flight = False
        self._report_logs()

    def _answered(self, answer: callback_pb2.CallbackResult) -> None:
        match answer.WhichOneof("result"):
            case "start":
                self.renew(answer.start.renewed)
            case "heartbeat":
                self.renew(answer.heartbeat.renewed)
                if answer.heartbeat.should_cancel:
                    self._cancel()
            case "refusal" if answer.refusal.reason in _FINAL_REASONS:
                # Servo does not know the attempt or has given it up, so there is no point in
                # continuing.
                self._cancel()


def now() -> Timestamp:
    seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
    return Timestamp(seconds=seconds, nanos=nanos)
