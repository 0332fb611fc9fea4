"""The sandbox around foreign code: candidates and compilers run inside, the harness's own processes outside."""
