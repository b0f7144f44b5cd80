#include "core/explain/hypothesis.h"

#include "core/base/checked.h"

namespace shw {

std::string_view name(FaultSide side) {
  switch (side) {
    case FaultSide::kCheckpoint:
      return "checkpoint";
    case FaultSide::kRequest:
      return "request";
    case FaultSide::kBoth:
      return "both";
    case FaultSide::kEither:
      break;
  }
  return "either";
}

Result<WorldSizes> parse_world_sizes(std::string_view text) {
  auto number = [](std::string_view digits) -> std::int64_t {
    if (digits.empty() || digits.size() > 7) return 0;
    std::int64_t value = 0;
    for (char c : digits) {
      if (c < '0' || c > '9') return 0;
      value = value * 10 + (c - '0');
    }
    return value;
  };
  std::size_t colon = text.find(':');
  if (colon != text.npos) {
    WorldSizes worlds{number(text.substr(0, colon)), number(text.substr(colon + 1))};
    if (worlds.save > 0 && worlds.load > 0) return worlds;
  }
  return fail(ErrorKind::kUsage, "--world \"" + std::string(text) + "\" is not two numbers", {},
              "--world 4:2 means: saved by 4 ranks, loaded by 2.");
}

}  // namespace shw
