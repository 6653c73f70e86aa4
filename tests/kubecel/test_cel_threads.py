"""A selector has no state of its own: threads may share it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from kubecel import CelDevice, compile_selector, device_from_wire

_EXPRESSIONS = (
    'device.attributes["d"].ids.exists(x, x == 7) && device.attributes["d"].ids.all(x, x >= 0)',
    'cel.bind(a, device.attributes["d"], a.ids.map(x, x * 2).sum() > 40 ? a.name.startsWith("n1") : a.index % 2 == 0)',
    'device.attributes["d"].?name.optMap(n, n + "x").orValue("") in ["n3x", "n15x"]',
    'device.attributes["d"].ids.filter(x, x % 2 == 0).size() > 2',
)


def _device(index: int) -> CelDevice:
    return device_from_wire(
        "d",
        {
            "attributes": {
                "ids": {"ints": list(range(index))},
                "name": {"string": f"n{index}"},
                "index": {"int": index},
            }
        },
    )


def _answers() -> list[tuple[bool, int]]:
    devices = [_device(index) for index in range(20)]
    return [
        compile_selector(f"{expression} // {round_}").evaluate(device)
        for round_ in range(3)
        for expression in _EXPRESSIONS
        for device in devices
    ]


def test_threads_get_the_same_answers() -> None:
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(_answers) for _ in range(4)]
        results = [future.result() for future in futures]
    assert all(result == _answers() for result in results)
