// Decodes blocks of GGUF to float32 exactly as gguf-py (quants.py) and ggml-quants.c do: each
// product and sum is rounded to float32.
#pragma once

#include <cstddef>

namespace shw {

using GgufDecode = void(const std::byte* block, float* elements);

GgufDecode decode_gguf_q4_0, decode_gguf_q4_1, decode_gguf_q5_0, decode_gguf_q5_1, decode_gguf_q8_0,
    decode_gguf_q8_1, decode_gguf_iq4_nl, decode_gguf_mxfp4;
// Blocks of 64 elements; 128 for Q1_0.
GgufDecode decode_gguf_nvfp4, decode_gguf_q1_0, decode_gguf_q2_0;
// Blocks of 256 elements, with a scale per 16 or 32 elements.
GgufDecode decode_gguf_q2_k, decode_gguf_q3_k, decode_gguf_q4_k, decode_gguf_q5_k, decode_gguf_q6_k,
    decode_gguf_q8_k, decode_gguf_iq4_xs, decode_gguf_tq1_0, decode_gguf_tq2_0;
// Blocks of 256 elements whose codes are points of a grid.
GgufDecode decode_gguf_iq1_s, decode_gguf_iq1_m, decode_gguf_iq2_xxs, decode_gguf_iq2_xs,
    decode_gguf_iq2_s, decode_gguf_iq3_xxs, decode_gguf_iq3_s;

}  // namespace shw
