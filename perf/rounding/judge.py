"""Checks the measured errors of compression against the documented bounds."""

import math

NEAR = (0.9, 1.1)
# Maximum error of Gaussian numbers in a two-shot all-reduce of any number of ranks.
TARGETS = {"int8": 0.010, "fp8_e4m3": 0.04, "int6": 0.033, "int4": 0.145}
GROWTH = 0.02  # Maximum growth of this error from 8 to 64 ranks beyond the expected growth.
MAX_RANKS = 64  # Maximum ranks for which expected errors hold; with more ranks, errors exceed terms.
# Rounding errors do not average out if terms are equal or smaller than the smallest code: they add up linearly.
ALIKE = ("single", "denormal", "identical", "gradient")
HEAVY = ("student", "outlier")  # A few numbers dominate the error, so its uncertainty exceeds 10 %.
SUPPORTED = 6  # Maximum mean error in standard errors.


def overflows(cell):
    """Returns true if values overflow in the format and become infinite, as documented."""
    return cell["data"] == "largest" and cell["type"] == "float32" and cell["format"] in ("fp16", "bf16")


def max_error(cell):
    """Returns the maximum error: that of one rounding of the same numbers, times the growth by repeated roundings."""
    one = max(cell["input_error"], cell["output_error"])
    growth = max(cell["growth"], cell["roundings"]) if cell["data"] in ALIKE else cell["growth"]
    room = 1.25 if cell["data"] in HEAVY else NEAR[1]
    return room * math.hypot(one * growth, cell["type_error"])


def violations_by_error(cell):
    if overflows(cell) or cell["data"] == "not_finite":
        return
    if any(cell[name] is None for name in ("error", "error_of_terms", "input_error", "output_error")):
        yield "an error is not a number"
    elif cell["data"] == "gaussian":
        ratio = cell["error"] / cell["expected"]
        if cell["ranks"] <= MAX_RANKS and not NEAR[0] <= ratio <= NEAR[1]:
            yield f"the error is {ratio:.3f} times the expected error"
        if abs(cell["bias"]) > SUPPORTED * cell["error"] / math.sqrt(cell["elements"]):
            yield f"the mean error is {cell['bias']:.2g}"
    elif cell["data"] == "zero":
        if cell["error"] != 0:
            yield "zeros became other numbers"
    elif cell["ranks"] <= MAX_RANKS:
        error = min(cell["error"], cell["error_of_terms"])
        if error > max_error(cell):
            yield f"the error is {error:.3g}, but the maximum is {max_error(cell):.3g}"


def violations(cell):
    """Yields a message for each violation."""
    if cell["identical"] is False:
        yield "ranks have different bits"
    if not cell["repeated"]:
        yield "the bits depend on the order in which ranks run"
    if cell["idempotent"] is False:
        yield "the result changes if it is encoded again"
    if cell["lost"]:
        yield f"{cell['lost']} NaN or infinite elements became numbers"
    if cell["wrong"]:
        yield f"{cell['wrong']} NaN or infinite elements became another special value"
    if cell["stray"] and not overflows(cell):
        yield f"{cell['stray']} numbers became NaN or infinite"
    if overflows(cell) and not cell["stray"]:
        yield "numbers beyond the range of the format did not become infinite"
    yield from violations_by_error(cell)


def title(cell):
    return (f"{cell['collective']} {cell['algorithm']}, {cell['ranks']} ranks, {cell['type']} as {cell['format']}, "
            f"{cell['data']}")


def two_shots(cells):
    """Returns the errors of two-shot all-reduces of Gaussian float32: {format: {ranks: error}}."""
    found = {}
    for cell in cells:
        kind = (cell["collective"], cell["algorithm"], cell["type"], cell["data"])
        if kind == ("all_reduce", "two_shot", "float32", "gaussian") and cell["error"] is not None:
            found.setdefault(cell["format"], {})[cell["ranks"]] = cell["error"]
    return found


def judge(cells):
    """Returns the messages of all violations."""
    found = [f"{title(cell)}: {violation}" for cell in cells for violation in violations(cell)]
    for cell in cells:
        target = TARGETS.get(cell["format"])
        if (cell["algorithm"], cell["data"], cell["collective"]) == ("two_shot", "gaussian", "all_reduce") and target \
                and (cell["error"] or 0) > target:
            found.append(f"{title(cell)}: the error is {cell['error']:.2%}, but the target is {target:.1%}")
    for name, errors in two_shots(cells).items():
        expected = math.sqrt((63 / 64 + 1) / (7 / 8 + 1))  # A rank's own share is not sent, so it is not rounded.
        if 8 in errors and 64 in errors and errors[64] / errors[8] > (1 + GROWTH) * expected:
            found.append(f"two_shot, {name}: from 8 to 64 ranks the error grows {errors[64] / errors[8]:.3f} times")
    return found
