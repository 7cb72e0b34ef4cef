"""Outputs and inputs of tasks: values in files, committed by a marker that is written last."""
