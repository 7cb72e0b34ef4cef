"""Puts the server's binary into the wheel if SERVO_WHEEL_BINARY names it; without it the wheel is
platform-independent.
"""

from __future__ import annotations

import os
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "SERVO_WHEEL_BINARY"


class CarryServer(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        binary = os.environ.get(VARIABLE)
        # An editable install uses the binary that the checkout builds.
        if binary and version == "standard":
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
            build_data["force_include"][binary] = "servo/bin/servo-standalone"
