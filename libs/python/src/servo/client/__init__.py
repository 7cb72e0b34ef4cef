"""The way to a Servo server: :class:`~servo.client.sync.Client` and :class:`~servo.client.aio.AsyncClient`.

Both do the same: a deadline on every call, a request id on every mutation, a repeat only of what the server did not
take (UNAVAILABLE) and only where a repeat does no harm, refusals as exceptions with their reason.
"""
