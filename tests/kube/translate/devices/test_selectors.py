"""Selectors of devices in CEL, as Kubernetes evaluates them."""

from __future__ import annotations

import pytest

from slacktide.kube.resources.devices import Device, DeviceAttribute, Quantity
from slacktide.kube.translate.devices import selectors
from slacktide.kube.translate.devices.selectors import SelectorError, attribute, matches

DRIVER = "gpu.example"
ATTRIBUTES = {
    "model": DeviceAttribute(string="a100"),
    "slots": DeviceAttribute(whole=3),
    "ready": DeviceAttribute(truth=True),
    "version": DeviceAttribute(version="1.10.0-rc.2"),
    "other.example/board": DeviceAttribute(string="b1"),
}
CAPACITY = {"memory": Quantity("80Gi"), "other.example/cores": Quantity("1500m")}
DEVICE = Device("d0", ATTRIBUTES, CAPACITY)
OWN, MEMORY = 'device.attributes["gpu.example"]', 'device.capacity["gpu.example"].memory'


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example"',
        f'{OWN}.model == "a100" && {OWN}.slots >= 3 && {OWN}.ready',
        f"{OWN}.ready",
        f'{OWN}.model in ["a100", "h100"] && {OWN}.model.startsWith("a") && {OWN}.model.upperAscii() == "A100"',
        'device.attributes["other.example"].board == "b1"',
        "device.attributes['other.example'].board.matches('^b[0-9]$')",
        f"cel.bind(its, {OWN}, its.ready && its.slots == 3)",
        f'{OWN}.?absent.orValue("none") == "none" && !has({OWN}.absent)',
        f'"model" in {OWN} && !("absent" in {OWN})',
        '!has(device.attributes["unknown.example"].model) && !("model" in device.attributes["unknown.example"])',
        '"gpu.example" in device.attributes && !("unknown.example" in device.attributes)',
        '!("unknown.example" in device.attributes && device.attributes["unknown.example"].model == "a")',
        f'{MEMORY}.compareTo(quantity("80Gi")) == 0 && {MEMORY} == quantity("81920Mi")',
        f'{MEMORY}.isGreaterThan(quantity("40G")) && {MEMORY}.isLessThan(quantity("1Ti"))',
        f"{MEMORY}.isInteger() && {MEMORY}.asInteger() == 80 * 1024 * 1024 * 1024 && {MEMORY}.sign() == 1",
        'device.capacity["other.example"].cores.asApproximateFloat() == 1.5',
        'device.capacity["other.example"].cores.add(quantity("500m")).sub(1).asInteger() == 1',
        'isQuantity("1Gi") && !isQuantity("much")',
        f'{OWN}.version.isLessThan(semver("1.10.0")) && {OWN}.version.isGreaterThan(semver("1.9.9"))',
        f'{OWN}.version.compareTo(semver("1.10.0-rc.10")) < 0 && {OWN}.version.compareTo(semver("1.10.0-rc.a")) < 0',
        f"{OWN}.version.major() == 1 && {OWN}.version.minor() == 10 && {OWN}.version.patch() == 0",
        'isSemver("1.2.3") && !isSemver("1.2")',
        'isSemver("v1.2", true) && !isSemver("v1.2", false) && !isSemver("v1.x", true)',
        'semver("v01.2", true) == semver("1.2.0") && semver("v1-rc.1", true) == semver("1.0.0-rc.1")',
        f'{OWN}.version == semver("1.10.0-rc.2+build.7") && !isSemver("1.0.0-01") && !isSemver("1.0.0-a..b")',
        "has(device.attributes[device.driver].model) && !has(device.attributes[device.driver].absent)",
        '!("unknown.example" in device.attributes) && !has(device.attributes["elsewhere.example"].model)',
        'device.attributes.exists(domain, domain == "other.example") && size(device.attributes) == 2',
        'device.attributes.all(domain, domain in ["gpu.example", "other.example", "unknown.example"])',
        f'{OWN}.absent == "a" || {OWN}.ready',
        "!device.allowMultipleAllocations",
    ],
)
def test_expressions_that_hold(expression: str) -> None:
    assert matches(expression, DEVICE, DRIVER)
    assert not matches(f"!({expression})", DEVICE, DRIVER)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (f'{OWN}.absent == "a"', "absent"),
        ('device.attributes["unknown.example"].model == "a"', "model"),
        (f"{OWN}.slots", "neither true nor false"),
        (f'{OWN}.slots > "a"', "overload"),
        (f'{OWN}.slots.compareTo(quantity("1")) > 0', "overload"),
        (f'{MEMORY}.compareTo(semver("1.0.0")) > 0', "expected two quantities, or two versions"),
        ('quantity("much") == quantity("1")', "much"),
        ('semver("1.2") == semver("1.2.0")', "semantic version"),
        ("[1, 2].sum() == 3", "sum"),
        ('url("https://a").getHost() == "a"', "url"),
        ("device.driver ==", "Syntax error"),
    ],
)
def test_what_cannot_be_said_is_an_error_that_quotes_the_expression(expression: str, said: str) -> None:
    with pytest.raises(SelectorError, match=r"CEL expression") as found:
        matches(expression, DEVICE, DRIVER)
    assert said in str(found.value)
    assert expression[:20] in str(found.value)


def test_an_attribute_of_a_kind_that_is_not_known() -> None:
    with pytest.raises(SelectorError, match="attribute speeds"):
        matches("true", Device("d", {"speeds": DeviceAttribute()}), DRIVER)


def test_an_attribute_by_its_full_name() -> None:
    assert attribute(DEVICE, DRIVER, "gpu.example/slots") == ATTRIBUTES["slots"]
    assert attribute(DEVICE, DRIVER, "other.example/board") == ATTRIBUTES["other.example/board"]
    assert attribute(DEVICE, DRIVER, "other.example/slots") is None


def test_without_its_package_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise ImportError("no module")

    monkeypatch.setattr(selectors, "_environment", absent)
    with pytest.raises(SelectorError, match=r"cel-expr-python.*install slacktide\[devices\]"):
        matches("true && true", DEVICE, DRIVER)


def test_the_drivers_own_domain_is_empty_and_not_absent_where_it_is_not_asked_for() -> None:
    bare = Device("d1", {}, {})
    assert not matches("has(device.attributes[device.driver].model)", bare, DRIVER)
    assert not matches('"gpu.example" in device.attributes', bare, DRIVER)
    assert matches("size(device.attributes) == 0", bare, DRIVER)


def test_an_expression_that_takes_long_is_not_asked_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a user's, there may be thousands of devices, and the scheduler does nothing else meanwhile."""
    numbers = f"[{', '.join(map(str, range(90)))}]"
    dear = f"{numbers}.all(x, {numbers}.all(y, x * y >= 0)) && {OWN}.ready"
    assert matches(dear, DEVICE, DRIVER)
    monkeypatch.setattr(selectors, "MOST_SECONDS", 1e-6)
    monkeypatch.setattr(selectors, "TRIED_SECONDS", 0.0)
    with pytest.raises(SelectorError, match=r"it takes more than .* ms for a device"):
        matches(dear, DEVICE, DRIVER)


def test_what_people_write_is_never_dear() -> None:
    expression = f'{OWN}.model == "a100" && {MEMORY}.isGreaterThan(quantity("40G")) && {OWN}.ready'
    for _ in range(3000):
        assert matches(expression, DEVICE, DRIVER)
    assert selectors._compiled(expression).seconds < 3000 * selectors.MOST_SECONDS / 5


def test_what_cannot_be_read_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node asks, whenever its devices are counted, and the API server knows functions that we do not."""
    expression = 'sets.contains(["a"], [device.driver])'
    for at in range(3):
        with pytest.raises(SelectorError, match=r"CEL expression 'sets.contains"):
            matches(expression, Device(f"d{at}"), DRIVER)
        monkeypatch.setattr(selectors, "_environment", lambda: pytest.fail("it is compiled again"))
