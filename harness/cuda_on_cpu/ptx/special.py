"""The special registers, as C++ expressions."""

from __future__ import annotations

_LANE = "::cuda_on_cpu::lane()"
_RANK = "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)"
_THREADS = "(blockDim.x * blockDim.y * blockDim.z)"

SPECIAL: dict[str, str] = {
    **{f"{name}.{axis}": f"std::uint32_t{{{variable}.{axis}}}"
       for name, variable in (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim"))
       for axis in "xyz"},
    "laneid": _LANE,
    "warpid": f"std::uint32_t{{{_RANK} / 32}}",
    "nwarpid": f"std::uint32_t{{({_THREADS} + 31) / 32}}",
    "lanemask_eq": f"(1u << {_LANE})",
    "lanemask_lt": f"((1u << {_LANE}) - 1)",
    "lanemask_le": f"((2u << {_LANE}) - 1)",
    "lanemask_gt": f"~((2u << {_LANE}) - 1)",
    "lanemask_ge": f"~((1u << {_LANE}) - 1)",
    "dynamic_smem_size": "static_cast<std::uint32_t>(::cuda_on_cpu::dynamic_shared_bytes())",
    "clock": "static_cast<std::uint32_t>(clock64())",
    "clock64": "static_cast<std::uint64_t>(clock64())",
    "globaltimer": "static_cast<std::uint64_t>(clock64())",
    "WARP_SZ": "std::uint32_t{32}",
}
"""Their values by their names without `%`. The number of the multiprocessor is left out: nothing stands for it."""
