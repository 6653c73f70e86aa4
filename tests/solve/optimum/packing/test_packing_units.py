"""What units of one type supply."""

from __future__ import annotations

from dralloc.solve.optimum.packing.units import CapacityUnitType
from dralloc.solve.optimum.solvers import cp_model


def test_devices_that_serve_nobody_supply_nothing() -> None:
    """Whoever could take a share of one may have no room elsewhere, and is not to be packed."""
    units = CapacityUnitType(types=(), uses=(), start=(3,))
    supplied = units.supply(cp_model.CpModel(), unit_count=3)
    assert not supplied.terms
