// Loops that a compiler turns into vector instructions are compiled twice, for what every x86-64
// has and for AVX2, and the loader takes the one that this machine can run. Results are the same:
// only whole numbers are vectorised so.
#pragma once

// Not under a sanitizer (the loader would call instrumented code before there is a run-time), nor
// with clang, which wants it otherwise.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SHW_CPU_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define SHW_CPU_CLONES
#endif
