// Any text as an error message: it is read in time, and the shares add up to at most 1.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/explain/explain.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shw::Explanation explanation =
      shw::explain(std::string_view(reinterpret_cast<const char*>(data), size));
  double sum = explanation.none_of_these;
  for (const shw::Hypothesis& one : explanation.hypotheses) sum += one.confidence;
  if (sum > 1.0001 || explanation.parsed.messages.size() > shw::kMaxMessages) std::abort();
  return 0;
}
