// The points that the codes of IQ1, IQ2 and IQ3 stand for (llama.cpp, ggml-common.h): eight numbers
// of IQ1 and IQ2, four of IQ3.
#pragma once

#include <cstdint>

namespace shw {

// Two bits per number, the first in the lowest bits: 0, 1 and 2 stand for -1, 0 and 1 in IQ1, for
// 8, 25 and 43 in IQ2.
extern const std::uint16_t kGgufGrid1[2048];
extern const std::uint16_t kGgufGrid2Xxs[256];
extern const std::uint16_t kGgufGrid2Xs[512];
extern const std::uint16_t kGgufGrid2S[1024];
// Three bits per number: 4, 12, ..., 52, 62 in IQ3_XXS, 1, 3, ..., 15 in IQ3_S.
extern const std::uint16_t kGgufGrid3Xxs[256];
extern const std::uint16_t kGgufGrid3S[512];

}  // namespace shw
