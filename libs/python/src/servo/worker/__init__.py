"""The worker: receives envelopes, runs user code in child processes, and reports the outcomes.

Start reading at :mod:`servo.worker.worker`. Envelopes arrive over a stream or by HTTP
(:mod:`.pull`, :mod:`.push`), and attempts run in slots (:mod:`.slots`, :mod:`.attempt`). User code
never runs in the worker's own process: a hang, leak, crash or fork ends with its child
(:mod:`.child`).
"""
