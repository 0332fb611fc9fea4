"""The optional words and operands of the supported instructions, by the grammar of the PTX manual: the translation and
ptxas accept the same ones."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from cuda_on_cpu.ptx.syntax import PtxError
from cuda_on_cpu.ptx.translation import to_cpp
from inlinebench.compile import toolchain

REGISTERS = ".reg .b16 h<8>; .reg .b32 r<8>; .reg .b64 d<8>; .reg .f32 f<8>; .reg .f64 e<8>; .reg .pred p<4>;"
VALID = """
ld.global.b32 r1, [d1];
ld.b32 r1, [d1+16];
ld.weak.global.b32 r1, [d1];
ld.global.L1::no_allocate.L2::128B.v4.b32 {r1,r2,r3,r4}, [d1];
ld.global.L1::evict_last.L2::cache_hint.v4.b32 {r1,r2,r3,r4}, [d1], d6;
ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {f1,f2,f3,f4}, [d1];
ld.global.ca.nc.f32 f1, [d1];
ld.volatile.shared.b32 r1, [r2];
ld.relaxed.gpu.global.L1::no_allocate.b32 r1, [d1];
ld.acquire.cta.shared::cta.b32 r1, [r2];
ld.mmio.relaxed.sys.global.u32 r1, [d1];
ld.local.b32 r1, [d1];
ldu.global.v4.f32 {f1,f2,f3,f4}, [d1];
st.global.L1::no_allocate.L2::cache_hint.v4.b32 [d1], {r1,r2,r3,r4}, d6;
st.global.wt.b32 [d1], r1;
st.release.cta.shared.b32 [r2], 0;
st.mmio.relaxed.sys.global.u32 [d1], r1;
atom.add.u32 r1, [d1], r2;
atom.acq_rel.gpu.global.cas.b32 r1, [d1], r2, r3;
atom.global.add.L2::cache_hint.f32 f1, [d1], f2, d6;
atom.global.v4.f32.add {f1,f2,f3,f4}, [d1], {f1,f2,f3,f4};
atom.acquire.gpu.global.exch.b32 _, [d1], r2;
red.release.gpu.global.add.s32 [d1], 1;
red.global.add.L2::cache_hint.f32 [d1], f1, d6;
prefetch.L2 [d1];
prefetch.local.L1 [d1];
prefetch.global.L2::evict_last [d1];
prefetch.tensormap [d1];
applypriority.global.L2::evict_normal [d1], 128;
createpolicy.fractional.L2::evict_last.b64 d1, 1.0;
createpolicy.fractional.L2::evict_last.b64 d1;
createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 d1, 0.5;
createpolicy.fractional.L2::evict_normal.L2::evict_first.b64 d1;
createpolicy.fractional.L2::evict_unchanged.b64 d1, f1;
createpolicy.range.L2::evict_last.b64 d1, [d2], 1024, 2048;
createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 d1, [d2], r1, r2;
createpolicy.cvt.L2.b64 d1, d2;
cp.async.ca.shared.global [r1], [d1], 4;
cp.async.ca.shared::cta.global [r1], [d1], 8, r2;
cp.async.cg.shared.global.L2::cache_hint.L2::128B [r1], [d1], 16, r2, d6;
cp.async.ca.shared.global.L2::cache_hint [r1], [d1], 8, p1, d6;
cp.async.mbarrier.arrive.noinc.b64 [d1];
shfl.sync.down.b32 r1|p1, r2, r3, 0x1f, r4;
vote.sync.uni.pred p1, !p2, -1;
match.all.sync.b32 r1, r2, -1;
elect.sync _|p1, -1;
bar.cta.sync 1, 64;
barrier.cta.sync.aligned 0;
barrier.cta.arrive 1, 64;
bar.red.and.pred p1, 0, !p2;
fence.gpu;
fence.acquire.gpu;
fence.proxy.async.shared::cta;
mbarrier.init.shared::cta.b64 [r1], r2;
mbarrier.arrive.b64 d2, [d1];
mbarrier.arrive.release.cta.shared::cta.b64 _, [r1], 2;
mbarrier.arrive.release.cluster.shared::cta.b64 d2, [r1];
mbarrier.arrive.noComplete.release.cta.shared.b64 d2, [r1], 1;
mbarrier.arrive.expect_tx.shared.b64 d2, [r1], 64;
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [r1], 64;
mbarrier.test_wait.parity.shared.b64 p1, [r1], r2;
mbarrier.try_wait.acquire.cta.b64 p1, [d1], d2;
mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p1, [r1], r2;
mbarrier.try_wait.parity.shared::cta.b64 p1, [r1], r2, 1000;
add.rn.ftz.sat.f32 f1, f2, f3;
add.sat.s32 r1, r2, r3;
mul.rn.sat.f16 h1, h2, h3;
fma.rn.relu.bf16x2 r1, r2, r3, r4;
div.full.ftz.f32 f1, f2, f3;
max.ftz.NaN.f32 f1, f2, f3;
ex2.approx.ftz.bf16 h1, h2;
rcp.approx.ftz.f64 e1, e2;
lop3.b32 r1, r2, r3, r4, 0x96;
lop3.or.b32 r1|p1, r2, r3, r4, 0x96, p2;
lop3.and.b32 _|p1, r2, r3, r4, 0x96, !p2;
setp.eq.or.s32 p1|p2, r1, r2, !p3;
mov.b64 {_, r2}, d1;
cvt.rn.relu.satfinite.f16.f32 h1, f1;
cvt.rn.satfinite.f16x2.f32 r1, f1, f2;
cvta.to.shared::cta.u64 d1, d2;
ldmatrix.sync.aligned.m8n8.x2.trans.b16 {r1,r2}, [d1];
""".splitlines()[1:]
INVALID = """
createpolicy.fractional.b64 d1, 0.5;
createpolicy.fractional.L2::evict_last.b64 d1, 0.5, d2;
createpolicy.range.L2::evict_last.b64 d1, [d2], 1024;
createpolicy.cvt.L2::evict_last.b64 d1, d2;
lop3.b32 r1, r2, r3, r4, 0x96, p2;
lop3.or.b32 r1|p1, r2, r3, r4, 0x96;
cp.async.cg.shared.global [r1], [d1], 8;
ld.mmio.weak.global.u32 r1, [d1];
prefetch.global [d1];
applypriority.global.L2::evict_normal [d1];
atom.global.cas.b32 r1, [d1], r2;
ld.global.L2::cache_hint.b32 r1, [d1];
shfl.sync.down.b32 r1|p1, r2, r3, 0x1f;
""".splitlines()[1:]


@pytest.mark.parametrize("line", VALID)
def test_an_optional_word_or_operand_is_translated(line: str) -> None:
    assert to_cpp(REGISTERS + line, ()).startswith("do {")


@pytest.mark.parametrize("line", INVALID)
def test_an_instruction_outside_the_grammar_is_refused(line: str) -> None:
    with pytest.raises(PtxError):
        to_cpp(REGISTERS + line, ())


def assemble(lines: Sequence[str], folder: Path) -> str:
    """Assembles a kernel of these lines and returns the errors."""
    body = "\n".join([REGISTERS, *lines, "ret;"])
    (folder / "lines.ptx").write_text(
        f".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry lines() {{\n{body}\n}}\n")
    command = [toolchain.nvcc(), "-arch=sm_90a", "-cubin", "lines.ptx", "-o", "lines.cubin"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr + done.stdout if done.returncode else ""


@pytest.mark.nvcc
def test_ptxas_accepts_what_is_translated(tmp_path: Path) -> None:
    assert assemble(VALID, tmp_path) == ""


@pytest.mark.nvcc
@pytest.mark.parametrize("line", INVALID)
def test_ptxas_refuses_what_is_refused(line: str, tmp_path: Path) -> None:
    assert "error" in assemble([line], tmp_path) or "fatal" in assemble([line], tmp_path)
