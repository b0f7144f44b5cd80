// What tests/gpu/run.sh does on a real card. No test framework: it is built on a bare machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace shw::test {

// How much of it there is to do.
struct Amounts {
  std::uint64_t slabs = 500, slab_elements = 4 << 20;
  std::uint64_t floats = std::uint64_t{1} << 32, floats_at_once = std::uint64_t{1} << 26;
  std::size_t parts = 256, part_bytes = std::size_t{32} << 20;  // of numbers
  std::int64_t side = 4096;                                     // of a slab of the pipeline
  std::size_t pipeline_slabs = 128;
};
// Some of everything: where a card is made up, one thread of a block after the other.
inline constexpr Amounts kLittle{8, 2000, 1 << 12, 1 << 10, 6, 1 << 14, 48, 20};

// Each prints what it found and says whether all was right.
bool check_slabs(const Amounts& amounts);
bool check_codes();
bool check_floats(const Amounts& amounts);
bool measure_kernels(const std::string& only);
bool measure_numbers(const Amounts& amounts);
bool measure_pipeline(const std::string& folder, const Amounts& amounts);
// `file`: the library; empty: the one that is found.
bool check_nccl(const std::string& file);

}  // namespace shw::test
