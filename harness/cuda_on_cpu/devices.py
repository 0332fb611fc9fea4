"""Makes "cuda" mean the CPU in C++, as in Python."""

from __future__ import annotations

import re

from .tokens import Code

_MEMBERS = {"is_cuda": "is_cpu", "is_cpu": "is_cuda", "cuda": "cpu"}
_ENUMS = {"DeviceType", "DispatchKey", "Backend"}
_DEVICE_STRING = re.compile(r'"cuda(:\d+)?"')


def rewrite_devices(code: Code) -> None:
    """Rewrites checks and names of devices in place: `x.is_cuda()`, `at::kCUDA`, `torch::Device("cuda:0")`."""
    for position in code.words():
        text = code.text(position)
        if text in _MEMBERS and _is_member_call(code, position):
            code.replace(position, _MEMBERS[text])
            _avoid_type(code, position)
        elif text == "kCUDA":
            code.replace(position, "kCPU")
        elif text == "kCPU" and _is_compared(code, position):
            # A check for the CPU must be false, as on a GPU.
            code.replace(position, "kCUDA")
        elif text == "CUDA" and _is_enumerator(code, position):
            code.replace(position, "CPU")
        elif text == "CPU" and code.text(code.before(position)) == "::" and _is_compared(code, position):
            code.replace(position, "CUDA")
    for position, token in enumerate(code.tokens):
        if token.kind == "string" and _DEVICE_STRING.fullmatch(token.text) and _constructs_device(code, position):
            code.replace(position, '"cpu"')


def _is_member_call(code: Code, position: int) -> bool:
    return code.text(code.before(position)) in (".", "->") and code.text(code.after(position)) == "("


def _avoid_type(code: Code, position: int) -> None:
    """Rewrites `x.type().is_cuda()` to use the device, because the old type has no `is_cpu`."""
    closing = code.before(code.before(position))
    name = code.before(code.opening(closing)) if code.text(closing) == ")" else -1
    if code.text(name) == "type" and code.text(position) != "cpu" and _is_member_call(code, name):
        code.replace(name, "device")


def _is_compared(code: Code, position: int) -> bool:
    """Whether `==` or `!=` stands before or after the qualified name that ends here."""
    start = position
    while code.text(before := code.before(start)) == "::" or (code.is_word(before) and code.text(start) == "::"):
        start = before
    return code.text(code.before(start)) in ("==", "!=") or code.text(code.after(position)) in ("==", "!=")


def _is_enumerator(code: Code, position: int) -> bool:
    """Whether it is an enumerator as in `DeviceType::CUDA`, or the key of `TORCH_LIBRARY_IMPL(name, CUDA, m)`."""
    before = code.before(position)
    if code.text(before) == "::":
        return code.text(code.before(before)) in _ENUMS
    opening = code.before(code.before(before))
    return code.text(before) == "," and code.text(code.before(opening)) == "TORCH_LIBRARY_IMPL"


def _constructs_device(code: Code, position: int) -> bool:
    """Whether a string constructs a device: `Device("cuda")`, `.device("cuda")`, `Device d("cuda")`, `Device d =
    "cuda"`, with braces or parentheses."""
    before = code.before(position)
    if code.text(before) not in ("(", "{", "="):
        return False
    name = code.before(before)
    return code.text(name) in ("Device", "device") or code.text(code.before(name)) == "Device"
