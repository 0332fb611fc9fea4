from __future__ import annotations

from harness.build.log import first_errors

GCC = """\
[1/2] c++ -c main.cpp
In file included from main.cpp:1:
cpp_sources:3:9: warning: unused variable 'error_count' [-Wunused-variable]
cpp_sources:4:1: error: 'Tensr' does not name a type
    4 | Tensr f();
      | ^~~~~
cpp_sources:5:1: error: expected ';'
cpp_sources:5:1: error: expected ';'
cpp_sources:6:1: error: 'a' was not declared
cpp_sources:7:1: error: 'b' was not declared
ninja: build stopped: subcommand failed.
"""


def test_the_first_three_errors_are_shown_each_once_and_the_rest_counted() -> None:
    assert first_errors(GCC) == (
        "cpp_sources:4:1: error: 'Tensr' does not name a type; cpp_sources:5:1: error: expected ';'; "
        "cpp_sources:6:1: error: 'a' was not declared (and 1 more errors)"
    )


def test_what_compilers_and_linkers_call_an_error() -> None:
    for line in (
        "main.cpp:1:10: fatal error: missing.h: No such file or directory",
        'cuda_sources(5): error: identifier "x" is undefined',
        "cuda_sources(5): error #20: identifier",
        "main.o: undefined reference to `f()'",
        "/usr/bin/ld: cannot find -lmissing: No such file or directory",
        "ptxas fatal   : Unresolved extern function 'g'",
        "ptxas error   : Entry function uses too much shared data",
    ):
        assert first_errors(f"something before\n{line}\nninja: build stopped") == line


def test_without_an_error_line_the_last_line_is_all_there_is() -> None:
    assert first_errors("one\ntwo\n\n") == "two"
    assert first_errors(" \n") == "the compiler said nothing"
