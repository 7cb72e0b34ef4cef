"""Does the work: takes envelopes from a stream, runs user code in child processes, reports what came of it.

Start reading at :mod:`servo.worker.worker`. User code never runs in the worker's own process: what it does to itself
(hang, leak, crash, fork) ends with its process group.
"""
