//! Generated servo.v1 types, their file descriptor set, and who may call each method.
