"""A neighbourhood in the making: its nodes and blocks, and what no other one may touch at the same time.

Nodes and blocks are in one neighbourhood at a time. Devices that several nodes can use are open to one neighbourhood,
the first of which a demand could use them; to others they are closed until that one is decided. Those free nobody who
has any of these devices, and count the rest of them as held, so that all else on their nodes can change meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable, Set

from dralloc.problem import DeviceIndex, NodeIndex, SlotIndex
from dralloc.problem.common import CommonDevices, common_devices, has_no_others
from dralloc.problem.indices import DemandIndex
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent
from dralloc.solve.optimum.node_capabilities import NodeCapabilities

__all__ = ["Assembly", "CommonUse"]

_Stocks = frozenset[CommonDevices]


class CommonUse:
    """Tells which nodes and demands have to do with devices that several nodes can use: stocks, one for the same nodes.

    Parameters
    ----------
    incumbent
        The answer in hand.
    capabilities
        Those of its problem.
    """

    def __init__(
        self, incumbent: Incumbent, capabilities: NodeCapabilities
    ) -> None:
        self._incumbent = incumbent
        self._capabilities = capabilities
        problem = self._problem = incumbent.problem
        stocks = common_devices(problem)
        self._stock_of = {
            slot: stock for stock in stocks for slot in stock.slots
        }
        self._on_node: dict[NodeIndex, set[CommonDevices]] = {}
        for stock in stocks:
            for node in stock.nodes:
                self._on_node.setdefault(node, set()).add(stock)
        self._without_others = {
            node
            for node in self._on_node
            if has_no_others(problem, node, self._stock_of.keys())
        }
        # Devices with the same key serve the same requests.
        device_key = problem.eligibility.device_key
        self._samples: dict[Hashable, DeviceIndex] = {}
        self._keys_of: dict[CommonDevices, set[Hashable]] = {}
        for stock in stocks:
            by_key = {device_key(device): device for device in stock.devices}
            self._samples |= by_key
            self._keys_of[stock] = set(by_key)
        self._useful: dict[Hashable, _Stocks] = {}

    def on_node(self, node: NodeIndex) -> _Stocks:
        """Return the stocks that a node can use."""
        return frozenset(self._on_node.get(node, ()))

    def has_no_others(self, node: NodeIndex) -> bool:
        """Whether a node can use stocks, and no device beside them."""
        return node in self._without_others

    def useful_to(self, demand: DemandIndex) -> _Stocks:
        """Return the stocks with a device that could serve a request of the demand."""
        shape = self._capabilities.shape(demand)
        if shape not in self._useful:
            keys = self._keys_that_serve(demand)
            self._useful[shape] = frozenset(
                stock
                for stock, keys_of_stock in self._keys_of.items()
                if not keys_of_stock.isdisjoint(keys)
            )
        return self._useful[shape]

    def _keys_that_serve(self, demand: DemandIndex) -> set[Hashable]:
        """Return the keys of devices of stocks that could serve a request of the demand."""
        selects = self._problem.eligibility.selects
        alternatives = [
            alternative.index
            for claim in self._problem.demands[demand].claims
            if not claim.is_synthetic
            for request in claim.requests
            for alternative in request.alternatives
        ]
        return {
            key
            for alternative in alternatives
            for key, device in self._samples.items()
            if selects(alternative, device) is True
        }

    def of_demand(self, demand: DemandIndex) -> _Stocks:
        """Return the stocks that a demand has anything of."""
        placement = self._incumbent.placements.get(demand)
        if placement is None or not self._stock_of:
            return frozenset()
        slots = [
            self._problem.devices[grant.device].slot
            for claim_grants in placement.grants
            for grant in claim_grants
        ]
        return frozenset(
            self._stock_of[slot] for slot in slots if slot in self._stock_of
        )


class Assembly:
    """A neighbourhood in the making.

    Parameters
    ----------
    busy
        What others have reserved.

    Attributes
    ----------
    nodes
        Those to which all of its demands may go.
    blocks
        Those that it frees.
    demand_count
        How many demands that are.
    """

    def __init__(
        self,
        incumbent: Incumbent,
        bonds: Bonds,
        common: CommonUse,
        busy: Set[Hashable],
    ) -> None:
        self._incumbent = incumbent
        self._bonds = bonds
        self._common = common
        self._busy = busy
        self._reserved: set[Hashable] = set()
        self.nodes: list[NodeIndex] = []
        self.blocks: dict[int, None] = {}
        self.demand_count = 0

    def add_node(self, node: NodeIndex) -> bool:
        """Add a node, and return True, unless others have reserved it, or all that it has to give."""
        keys: set[Hashable] = {("node", node)}
        if self._common.has_no_others(node):
            keys |= self._common.on_node(node)
        if not self._busy.isdisjoint(keys):
            return False
        self._reserved.add(("node", node))
        self.nodes.append(node)
        return True

    def add_block(self, block: int) -> None:
        """Free a block, unless others have reserved what it has."""
        if block in self.blocks:
            return
        keys: set[Hashable] = {("block", block)}
        for demand in self._bonds.blocks[block]:
            roles = self._incumbent.problem.demands[demand].roles
            keys.update(("rule", role.rule) for role in roles)
            keys |= self._common.of_demand(demand)
            if demand in self._incumbent.placements:
                home = self._incumbent.placements[demand].node
                keys.add(("node", home))
        if self._busy.isdisjoint(keys):
            self._reserved |= keys
            self.blocks[block] = None
            self.demand_count += len(self._bonds.blocks[block])

    @property
    def demands(self) -> list[DemandIndex]:
        """Those that are freed."""
        return [
            demand
            for block in self.blocks
            for demand in self._bonds.blocks[block]
        ]

    @property
    def touched_nodes(self) -> set[NodeIndex]:
        """Its nodes, and those where the freed demands stand."""
        placements = self._incumbent.placements
        homes = {
            placements[demand].node
            for demand in self.demands
            if demand in placements
        }
        return {*self.nodes, *homes}

    @property
    def _wanted(self) -> _Stocks:
        """Devices in common that a demand which is freed could get something of."""
        in_reach = _Stocks().union(
            *map(self._common.on_node, self.touched_nodes)
        )
        useful = _Stocks().union(*map(self._common.useful_to, self.demands))
        return in_reach & useful

    @property
    def opened(self) -> _Stocks:
        """Those devices in common that it has for itself."""
        return self._wanted - self._busy

    @property
    def withheld(self) -> frozenset[SlotIndex]:
        """Those that it could use, and that another neighbourhood has for itself."""
        closed = self._wanted & self._busy
        return frozenset[SlotIndex]().union(*(stock.slots for stock in closed))

    @property
    def reserved(self) -> frozenset[Hashable]:
        """What no other neighbourhood may touch at the same time: nodes, blocks, rules between pods, common devices."""
        return frozenset(self._reserved) | self.opened
