//! All services in one binary, and the commands that run a mesh on one machine.
