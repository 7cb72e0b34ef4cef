"""Servo on one machine, for the one who writes assets: a mesh, a worker, and a deployment at every save."""
