"""The script that makes fairseq's wheel from upstream's source."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci/fairseq_wheel.py"
UPSTREAM = {
    "fairseq/dataclass/configs.py": "class A:\n    common: CommonConfig = CommonConfig()\n    n: int = 1\n",
    "fairseq/models/transformer/transformer_config.py": (
        "class B:\n    encoder: EncDecBaseConfig = EncDecBaseConfig()\n"
        "    noise: QuantNoiseConfig = field(default=QuantNoiseConfig())\n"
    ),
    "fairseq/checkpoint_utils.py": (
        'a = torch.load(f, map_location="cpu", weights_only=False)\n'
        "b = torch.load(\n    f,\n    map_location=g(1),\n    weights_only=False,\n)\n"
    ),
    "setup.py": 'setup(name="fairseq", x=["hydra-core>=1.0.7,<1.1", "omegaconf<2.1"])\n',
    "fairseq/version.txt": "0.12.2\n",
}


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fairseq_wheel", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, text in UPSTREAM.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_is_changed(script: ModuleType, source: Path) -> None:
    script.change(source)
    assert {name: (source / name).read_text() for name in UPSTREAM} == {
        "fairseq/dataclass/configs.py": (
            "class A:\n    common: CommonConfig = field(default=CommonConfig)\n    n: int = 1\n"
        ),
        "fairseq/models/transformer/transformer_config.py": (
            "class B:\n    encoder: EncDecBaseConfig = field(default=EncDecBaseConfig)\n"
            "    noise: QuantNoiseConfig = field(default=QuantNoiseConfig)\n"
        ),
        "fairseq/checkpoint_utils.py": (
            'a = torch.load(f, map_location="cpu")\nb = torch.load(\n    f,\n    map_location=g(1),\n)\n'
        ),
        "setup.py": 'setup(name="ve-fairseq", x=["hydra-core>=1.3.2", "omegaconf"])\n',
        "fairseq/version.txt": "0.12.3\n",
    }


def test_what_upstream_has_no_more_is_told(script: ModuleType, source: Path) -> None:
    (source / "fairseq/checkpoint_utils.py").write_text("a = torch.load(f)\n")
    with pytest.raises(SystemExit, match=r"checkpoint_utils.py has nothing like"):
        script.change(source)
    (source / "setup.py").unlink()
    with pytest.raises(SystemExit):
        script.change(source)
