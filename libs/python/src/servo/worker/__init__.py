"""Does the work: takes envelopes, runs user code in child processes, reports what came of it.

Start reading at :mod:`servo.worker.worker`: a worker has a door that envelopes come through (:mod:`.pull` or
:mod:`.push`) and slots that attempts run in (:mod:`.slots`, :mod:`.attempt`). User code never runs in the worker's own
process: what it does to itself (hang, leak, crash, fork) ends with its child (:mod:`.child`).
"""
