// Checks that tests/gpu/run.sh runs on a real GPU. Without a test framework, because they are built
// on a bare machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace shw::test {

// The amount of work of each check.
struct Amounts {
  std::uint64_t slabs = 500, slab_elements = 4 << 20;
  std::uint64_t floats = std::uint64_t{1} << 32, floats_at_once = std::uint64_t{1} << 26;
  std::size_t parts = 256, part_bytes = std::size_t{32} << 20;  // of numbers
  std::int64_t side = 4096;  // of one slab of the pipeline, in elements
  std::size_t pipeline_slabs = 128;
};
// A little of everything, for a simulated card, which runs the threads of a block one by one.
inline constexpr Amounts kLittle{8, 2000, 1 << 12, 1 << 10, 6, 1 << 14, 48, 20};

// Each function prints its results and returns whether all were right.
bool check_slabs(const Amounts& amounts);
bool check_codes();
bool check_floats(const Amounts& amounts);
bool measure_kernels(const std::string& only);
bool measure_numbers(const Amounts& amounts);
bool measure_pipeline(const std::string& folder, const Amounts& amounts);
// `file`: path of the library; empty: searches for it.
bool check_nccl(const std::string& file);

}  // namespace shw::test
