// What tests/gpu/run.sh does on a real card. No test framework: it is built on a bare machine.
#pragma once

#include <cstdint>
#include <string>

namespace shw::test {

// Each prints what it found and says whether all was right.
bool check_slabs(std::uint64_t slabs);
bool check_codes();
bool check_all_floats();
bool measure_kernels(const std::string& only);
bool measure_numbers();
bool measure_pipeline(const std::string& folder);
// `file`: the library; empty: the one that is found.
bool check_nccl(const std::string& file);

}  // namespace shw::test
