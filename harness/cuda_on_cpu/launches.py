"""Translates `kernel<<<grid, block>>>(arguments)` into a call of the CPU launcher."""

from __future__ import annotations

from .errors import Malformed
from .tokens import Code


def rewrite_launches(code: Code) -> None:
    """Rewrites every launch in place. The parentheses of the arguments stay as they are.

    The callee is put into a lambda, so that the compiler deduces template arguments from the call as usual.
    """
    position = 0
    while position < len(code):
        if code.text(position) == "<<<":
            position = _rewrite(code, position)
        position += 1
    _rewrite_pointer_launches(code)


def _rewrite(code: Code, chevron: int) -> int:
    end = _closing_chevron(code, chevron)
    line = code.tokens[chevron].line
    if end < 0:
        raise Malformed("<<<", line, "this launch lacks `>>>` or an argument list after it; add it")
    start = callee_start(code, chevron)
    if start == chevron:
        raise Malformed("<<<", line, "this launch names no kernel; put the kernel before `<<<`")
    name = _name(code, start, chevron)
    names = _argument_names(code, code.after(end))
    parameters, values = _pass_literals(code, code.after(end))
    code.splice(end - 2, end + 1, "))")
    code.splice(chevron, chevron + 1, f"({values}); }}, ::cuda_on_cpu::Configuration(")
    code.insert(start, f'::cuda_on_cpu::Launcher("{name}", __LINE__, "{names}", [&]({parameters}) {{ ')
    return start


def _argument_names(code: Code, opening: int) -> str:
    """Returns a name for each argument that `_pass_literals` keeps, for messages: `out` in `out.data_ptr<float>()`."""
    names = []
    for argument in _split_arguments(code, opening):
        if _is_literal(_flat(code, argument)):
            continue
        words = [position for position in argument if code.is_word(position)]
        owners = [position for position in words if code.text(code.after(position)) in (".", "->")]
        names.append(code.text((owners or words)[-1]) if words else "")
    return "\\n".join(names)


def _pass_literals(code: Code, opening: int) -> tuple[str, str]:
    """Returns the lambda's parameters, and the arguments of the inner call, for the argument list opened at `opening`.

    A null pointer or a braced list loses its meaning when it is passed on, so these arguments move to the inner call.
    """
    arguments = _split_arguments(code, opening)
    texts = [_flat(code, argument) for argument in arguments]
    literal = list(map(_is_literal, texts))
    if not any(literal) or any("..." in text or "__VA_ARGS__" in text for text in texts):
        return "const auto&... cuda_on_cpu_arguments", "cuda_on_cpu_arguments..."
    names = [f"cuda_on_cpu_argument_{index}" for index in range(len(texts))]
    parameters = [f"const auto& {name}" for name, moved in zip(names, literal, strict=True) if not moved]
    values = [text if moved else name for name, text, moved in zip(names, texts, literal, strict=True)]
    _remove_arguments(code, arguments, literal)
    return ", ".join(parameters), ", ".join(values)


def _is_literal(argument: str) -> bool:
    return argument in ("0", "NULL") or argument.startswith("{")


def _split_arguments(code: Code, opening: int) -> list[range]:
    """Returns the token positions of each argument, between parentheses and commas."""
    closing = code.closing(opening)
    arguments: list[range] = []
    start = position = opening + 1
    while position < closing:
        text = code.text(position)
        if text in ("(", "[", "{"):
            position = code.closing(position)
        elif text == "<":
            position = max(code.angle_closing(position), position)
        elif text == ",":
            arguments.append(range(start, position))
            start = position + 1
        position += 1
    return [*arguments, range(start, closing)]


def _flat(code: Code, positions: range) -> str:
    return " ".join(text for text in map(code.text, positions) if text)


def _remove_arguments(code: Code, arguments: list[range], removed: list[bool]) -> None:
    """Blanks removed arguments and a comma for each: the comma after it, or before it if no later argument is kept."""
    kept = [index for index, gone in enumerate(removed) if not gone]
    for index, positions in enumerate(arguments):
        if removed[index]:
            for position in positions:
                if "\n" not in code.tokens[position].text:
                    code.replace(position, "")
        if index + 1 < len(arguments) and (not kept or removed[index] or index == kept[-1]):
            code.replace(positions.stop, "")


def _closing_chevron(code: Code, chevron: int) -> int:
    """Returns the last sign of the `>>>` that ends the configuration and precedes an argument list, or -1."""
    position = chevron + 1
    while position < len(code):
        text = code.text(position)
        if text in ("(", "[", "{"):
            position = code.closing(position)
        elif text == ">" and code.text(position + 1) == ">" and code.text(position + 2) == ">":
            if code.text(position + 3) != ">" and code.text(code.after(position + 2)) == "(":
                return position + 2
        elif text == ";":
            return -1
        position += 1
    return -1


def callee_start(code: Code, end: int) -> int:
    """Returns the start of the postfix expression that ends before `end`: `a::b<T, 4>`, `(*f)`, `table[i]`, `x.f<T>()`.
    """
    position = end
    while True:
        last = code.before(position)
        text = code.text(last)
        if text == ">":
            opening = code.angle_opening(last)
            if opening < 0:
                return position
            position = opening
            continue
        if text in (")", "]"):
            position = code.opening(last)
            if not (code.is_word(code.before(position)) or code.text(code.before(position)) in (">", ")", "]")):
                return position
            if code.text(code.before(position)) in _STATEMENTS:
                return position
            continue
        if not code.is_word(last):
            return position
        position = last
        joint = code.before(position)
        if code.text(joint) == "#" and code.text(joint - 1) == "#":  # a name pasted together in a macro
            position = joint - 1
            continue
        if code.text(joint) == "template":
            position, joint = joint, code.before(joint)
        if code.text(joint) not in ("::", ".", "->"):
            return position
        position = joint
        before = code.before(joint)
        owned = code.is_word(before) and code.text(before) not in _STATEMENTS
        if not owned and code.text(before) not in (">", ")", "]"):
            return position  # a leading ::


_STATEMENTS = {"return", "else", "do", "if", "for", "while", "switch", "case"}


def _name(code: Code, start: int, end: int) -> str:
    """Returns the last name in the callee outside template arguments, for messages."""
    name, position = "kernel", start
    while position < end:
        if code.text(position) == "<":
            position = max(code.angle_closing(position), position)
        elif code.is_word(position):
            name = code.text(position)
        position += 1
    return name


_TAKE_KERNELS = ("cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaFuncSetAttribute", "cudaFuncGetAttributes")


def _rewrite_pointer_launches(code: Code) -> None:
    """Removes the cast in `cudaLaunchKernel((void*)kernel, ...)`, because the types of the parameters are needed."""
    for position in list(code.words(*_TAKE_KERNELS)):
        opening = code.after(position)
        if code.text(opening) != "(":
            continue
        first = code.after(opening)
        if code.text(first) == "(":
            closing = code.closing(first)
            if _is_void_pointer(code, first + 1, closing):
                _blank(code, first, closing)
        elif code.text(first) in ("reinterpret_cast", "static_cast"):
            angle = code.after(first)
            end = code.angle_closing(angle)
            if end > 0 and _is_void_pointer(code, angle + 1, end):
                _blank(code, first, end)


def _is_void_pointer(code: Code, start: int, end: int) -> bool:
    texts = [text for text in map(code.text, range(start, end)) if text]
    return sorted(text for text in texts if text != "const") == ["*", "void"]


def _blank(code: Code, first: int, last: int) -> None:
    for position in range(first, last + 1):
        if "\n" not in code.tokens[position].text:
            code.replace(position, "")
