"""How a broken promise is told."""


def expect(name: str, holds: bool, fault: str) -> None:
    """Raise an AssertionError that names what was checked, unless a promise holds."""
    if not holds:
        raise AssertionError(f"{name}: {fault}")
