"""Make the script of charts when the package is built or installed.

Reports carry the JavaScript that draws their charts, so that they open without a network. The renderer that
contains it takes 88 MB once installed; the script alone takes 1 MB, so only the build needs the renderer. A
wheel has it compressed, a checkout as it is.
"""

import gzip
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SCRIPT = "src/sourdine/report/charts.js"


class ChartScriptHook(BuildHookInterface):
    """A step of the build that writes the script of charts beside the module that reads it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the script, and add it to the wheel although git ignores it."""
        import vl_convert

        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        path = Path(self.root, SCRIPT)
        if version == "editable":
            path.write_text(script, encoding="utf-8", newline="\n")
            return
        packed = path.with_name(f"{path.name}.gz")
        packed.write_bytes(gzip.compress(script.encode(), mtime=0))  # the same bytes in each build
        build_data["artifacts"].append(packed.relative_to(self.root).as_posix())
