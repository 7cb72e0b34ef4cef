"""The definitions that users write: assets, checks, schedules, sensors.

Definitions are values. Creating one checks it alone; their combination is checked when a manifest
is made of them (:mod:`servo.manifest`). Nothing here imports protobuf or grpc.
"""
