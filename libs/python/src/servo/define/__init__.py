"""How users say what there is: assets, checks, schedules, sensors.

Definitions are values. Making one checks what can be checked alone; what they mean together is judged when a manifest
is made of them (:mod:`servo.manifest`). None of this imports protobuf or grpc.
"""
