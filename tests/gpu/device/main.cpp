#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device.h"
#include "gpu/cuda_executor.h"

using namespace shw;
using test::Amounts, test::kLittle;

int main(int count, char** words) {
  // So that a stopped process has printed all its results.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Amounts amounts;
  if (count > 1 && std::strcmp(words[1], "--little") == 0) {
    amounts = kLittle;
    --count;
    ++words;
  }
  const std::string what = count > 1 ? words[1] : "";
  const std::string more = count > 2 ? words[2] : "";
  Gpus found = cuda_gpus();
  if (!found.none.empty()) {
    std::printf("GPU: none (%s)\n", found.none.c_str());
    return 4;
  }
  const auto begin = std::chrono::steady_clock::now();
  bool right = false;
  if (what == "slabs" && !more.empty()) amounts.slabs = std::strtoull(more.c_str(), nullptr, 10);
  if (what == "slabs")
    right = test::check_slabs(amounts);
  else if (what == "codes")
    right = test::check_codes();
  else if (what == "floats")
    right = test::check_floats(amounts);
  else if (what == "kernels")
    right = test::measure_kernels(more);
  else if (what == "numbers")
    right = test::measure_numbers(amounts);
  else if (what == "pipeline")
    right = test::measure_pipeline(more.empty() ? "/dev/shm" : more, amounts);
  else if (what == "nccl")
    right = test::check_nccl(more);
  else
    std::printf(
        "usage: device [--little] slabs [N] | codes | floats | kernels [PART OF A NAME] | numbers "
        "| pipeline "
        "[FOLDER] | nccl [LIBRARY]\n");
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  std::printf("%s: %s in %.1f s\n\n", what.c_str(), right ? "right" : "WRONG", spent.count());
  return right ? 0 : 1;
}
