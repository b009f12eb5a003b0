"""Make the wheel of fairseq that this project pins, from upstream's source.

For the day when the package index has ve-fairseq no more, and for platforms that it has no wheel for:

    git clone https://github.com/facebookresearch/fairseq
    python .ci/fairseq_wheel.py fairseq dist
    pip install dist/ve_fairseq-*.whl

It needs a C++ compiler, and in the environment that runs it torch, numpy, cython, setuptools and wheel.
The source is copied, not changed. What is changed in the copy: defaults of nested dataclasses, which Python
3.11 refuses as instances; `weights_only=False`, with which checkpoints execute code; the versions of hydra
and omegaconf; name and version. ve-fairseq 0.12.3 was made from commit 3d262bb2.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAME, VERSION = "ve-fairseq", "0.12.3"
CONFIG = r"(\w+Config)\(\)"
CHANGES: dict[str, tuple[tuple[str, str], ...]] = {
    "fairseq/dataclass/configs.py": ((rf"^(    \w+: \w+) = {CONFIG}$", r"\1 = field(default=\2)"),),
    "fairseq/models/transformer/transformer_config.py": (
        (rf"^(    \w+: \w+) = {CONFIG}$", r"\1 = field(default=\2)"),
        (rf"field\(default={CONFIG}\)", r"field(default=\1)"),
    ),
    "fairseq/checkpoint_utils.py": ((r"\n\s*weights_only=False,|, weights_only=False", ""),),
    "setup.py": (
        (r'name="fairseq"', f'name="{NAME}"'),
        (r'"hydra-core[^"]*"', '"hydra-core>=1.3.2"'),
        (r'"omegaconf[^"]*"', '"omegaconf"'),
    ),
    "fairseq/version.txt": ((r"^\S+", VERSION),),
}
"""By file what is replaced by what; each must be found."""


def change(source: Path) -> None:
    """Make the changes in a copy of upstream's source.

    Raises:
        SystemExit: if a file or the text to change is not there.
    """
    for name, replacements in CHANGES.items():
        file = source / name
        if not file.is_file():
            sys.exit(f"{source} has no {name}; give a checkout of upstream's fairseq")
        text = file.read_text("utf-8")
        for pattern, replacement in replacements:
            text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
            if not count:
                sys.exit(f"{file} has nothing like {pattern}; upstream has changed: look at it")
        file.write_text(text, "utf-8")


def main() -> None:
    """Copy, change and build."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, help="checkout of upstream's fairseq")
    parser.add_argument("out", type=Path, help="folder for the wheel")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "fairseq")
        ignored = shutil.ignore_patterns(".git", "build", "*.so")
        shutil.copytree(args.source, copy, symlinks=True, ignore=ignored)
        change(copy)
        pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
        status = subprocess.run([*pip, "--wheel-dir", str(args.out.resolve()), str(copy)])
    sys.exit(status.returncode)


if __name__ == "__main__":
    main()
