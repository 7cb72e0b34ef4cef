"""A worker that records its signatures.

``python -m tests.worker.noting worker …`` writes into the folder ``NOTES``: ``envelope``, the last
one; ``beats``, a line for each heartbeat path; ``refusals``, a line for the reason of each refused
report.
"""

from __future__ import annotations

import os
from functools import wraps
from pathlib import Path
from typing import Any

from servo.cli.main import main
from servo.v1 import callback_pb2, error_pb2, worker_pb2
from servo.worker.attempt import Attempt
from servo.worker.attempt_reports import AttemptReports
from servo.worker.reports import Reports

NOTES = "NOTES"


def envelope_in(notes: Path) -> worker_pb2.TaskEnvelope:
    return worker_pb2.TaskEnvelope.FromString((notes / "envelope").read_bytes())


def lines_in(notes: Path, name: str) -> list[str]:
    file = notes / name
    return file.read_text().splitlines() if file.exists() else []


def note_all(notes: Path) -> None:
    def note(name: str, line: str) -> None:
        with (notes / name).open("a") as file:
            file.write(f"{line}\n")

    begin, renew, take = Attempt.__init__, AttemptReports.renew, Reports._handle_answer

    @wraps(begin)
    def noted_begin(attempt: Attempt, envelope: worker_pb2.TaskEnvelope, **more: Any) -> None:
        (notes / "envelope").write_bytes(envelope.SerializeToString())
        note("beats", envelope.callbacks.heartbeat)
        begin(attempt, envelope, **more)

    @wraps(renew)
    def noted_renew(own: AttemptReports, renewed: callback_pb2.RenewedPaths) -> None:
        note("beats", renewed.heartbeat)
        renew(own, renewed)

    @wraps(take)
    def noted_take(reports: Reports, answer: callback_pb2.CallbackResult) -> None:
        if answer.HasField("refusal"):
            note("refusals", error_pb2.ErrorReason.Name(answer.refusal.reason))
        take(reports, answer)

    for kind, name, noted in [
        (Attempt, "__init__", noted_begin),
        (AttemptReports, "renew", noted_renew),
        (Reports, "_handle_answer", noted_take),
    ]:
        setattr(kind, name, noted)


if __name__ == "__main__":
    note_all(Path(os.environ[NOTES]))
    main()
