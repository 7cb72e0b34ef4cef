"""Clients of a Servo server: :class:`~servo.client.sync.Client` and
:class:`~servo.client.aio.AsyncClient`.

Both set a deadline on every call and a request id on every mutation, retry only calls that the
server did not accept (UNAVAILABLE) and that are safe to repeat, and raise refusals as exceptions
with their reason.
"""
