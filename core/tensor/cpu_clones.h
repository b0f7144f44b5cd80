// Compiles vectorised loops twice, for baseline x86-64 and for AVX2; the dynamic loader
// selects one at load time. Results are equal, because only integer operations are vectorised
// this way.
#pragma once

// Not with sanitizers, because the loader would call instrumented code before their run-time is
// initialised. Not with clang, whose syntax differs.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SHW_CPU_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define SHW_CPU_CLONES
#endif
