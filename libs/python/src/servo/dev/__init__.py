"""Servo on one machine, for the development of assets: a mesh, a worker, and a deployment at every save."""
