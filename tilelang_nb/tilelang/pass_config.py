"""`tilelang.transform`: `PassConfigKey`, upstream's names of compiler options, and `simplify_prim_func`.

Every name is accepted where `pass_configs` is; what an option does is for the lowering to say, and an option that it
has no use for changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

_NAMES = {
    "TL_SIMPLIFY": "tl.Simplify",
    "TL_DISABLE_BUFFER_INIT_CHECK": "tl.disable_buffer_init_check",
    "TL_DISABLE_DATA_RACE_CHECK": "tl.disable_data_race_check",
    "TL_DISABLE_WARP_SPECIALIZED": "tl.disable_warp_specialized",
    "TL_ENABLE_AUTO_WARP_SPECIALIZATION": "tl.enable_auto_warp_specialization",
    "TL_ENABLE_FAST_MATH": "tl.enable_fast_math",
    "TL_DISABLE_FAST_MATH": "tl.disable_fast_math",
    "TL_PTXAS_REGISTER_USAGE_LEVEL": "tl.ptxas_register_usage_level",
    "TL_ENABLE_PTXAS_VERBOSE_OUTPUT": "tl.enable_ptxas_verbose_output",
    "TL_DEVICE_COMPILE_FLAGS": "tl.device_compile_flags",
    "TL_EMIT_LINE_DIRECTIVES": "tl.emit_line_directives",
    "TL_CONFIG_INDEX_BITWIDTH": "tl.config_index_bitwidth",
    "TL_DISABLE_DYNAMIC_TAIL_SPLIT": "tl.disable_dynamic_tail_split",
    "TL_DYNAMIC_ALIGNMENT": "tl.dynamic_alignment",
    "TL_DISABLE_TMA_LOWER": "tl.disable_tma_lower",
    "TL_DISABLE_SAFE_MEMORY_ACCESS": "tl.disable_safe_memory_legalize",
    "TL_DISABLE_VECTORIZE_256": "tl.disable_vectorize_256",
    "TL_ENABLE_ASYNC_COPY": "tl.enable_async_copy",
    "TL_ENABLE_LOWER_LDGSTG": "tl.enable_lower_ldgstg",
    "TL_ENABLE_LOWER_LDGSTG_PREDICATED": "tl.enable_lower_ldgstg_predicated",
    "TL_ENABLE_VECTORIZE_PLANNER_VERBOSE": "tl.enable_vectorize_planner_verbose",
    "TL_DISABLE_WGMMA": "tl.disable_wgmma",
    "TL_DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS": "tl.debug_merge_shared_memory_allocations",
    "TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE": "tl.enable_aggressive_shared_memory_merge",
    "TL_DISABLE_SHARED_MEMORY_REUSE": "tl.disable_shared_memory_reuse",
    "TL_DISABLE_SHUFFLE_ELECT": "tl.disable_shuffle_elect",
    "TL_DISABLE_LOOP_UNSWITCHING": "tl.disable_loop_unswitching",
    "TL_DISABLE_THREAD_STORAGE_SYNC": "tl.disable_thread_storage_sync",
    "TL_FORCE_LET_INLINE": "tl.force_let_inline",
    "TL_AST_PRINT_ENABLE": "tl.ast_print_enable",
    "TL_LAYOUT_VISUALIZATION_ENABLE": "tl.layout_visualization_enable",
    "TL_LAYOUT_VISUALIZATION_FORMATS": "tl.layout_visualization_formats",
    "TL_STORAGE_REWRITE_DETECT_INPLACE": "tl.storage_rewrite_detect_inplace",
    "TL_DISABLE_OUT_OF_BOUND_WARNING": "tl.disable_out_of_bound_warning",
    "TL_ENABLE_DUMP_IR": "tl.enable_dump_ir",
    "TL_DUMP_IR_DIR": "tl.dump_ir_path",
    "TIR_ENABLE_EQUIV_TERMS_IN_CSE": "tir.enable_equiv_terms_in_cse_tir",
    "TIR_DISABLE_CSE": "tirx.disable_cse_tir",
    "TIR_SIMPLIFY": "tirx.Simplify",
    "TIR_DISABLE_STORAGE_REWRITE": "tirx.disable_storage_rewrite",
    "TIR_DISABLE_VECTORIZE": "tirx.disable_vectorize",
    "TIR_USE_ASYNC_COPY": "tirx.use_async_copy",
    "TIR_ENABLE_DEBUG": "tirx.enable_debug",
    "TIR_MERGE_STATIC_SMEM": "tirx.merge_static_smem",
    "TIR_ADD_LOWER_PASS": "tirx.add_lower_pass",
    "TIR_NOALIAS": "tirx.noalias",
    "CUDA_KERNELS_OUTPUT_DIR": "cuda.kernels_output_dir",
}

PassConfigKey = Enum("PassConfigKey", _NAMES, type=str, module=__name__)  # type: ignore[misc]
PassConfigKey.__doc__ = "Names of compiler options, for the keys of `pass_configs`."


def options_of(pass_configs: Mapping[Any, Any] | None) -> dict[str, Any]:
    """Options of the lowering from upstream's `pass_configs`, whose keys are `PassConfigKey` or their texts."""
    given = {str(getattr(key, "value", key)): value for key, value in (pass_configs or {}).items()}
    return {key: _comparable(value) for key, value in given.items()}


def _comparable(value: Any) -> Any:
    """Builds are found again by their options, so lists and dicts become tuples."""
    if isinstance(value, dict):
        return tuple(sorted((str(key), _comparable(item)) for key, item in value.items()))
    return tuple(_comparable(item) for item in value) if isinstance(value, (list, tuple)) else value


def simplify_prim_func(function: Any) -> Any:
    """Does nothing: every kernel is simplified.  A decorator of functions that return one."""
    return function
