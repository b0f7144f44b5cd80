// The tabs above the window and requests for them. Views do not own the tabs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/session/command.h"

namespace shw {

enum class Tone : std::uint8_t { kQuiet, kOk, kBad, kWarn, kUnknown };  // colour of a verdict

// Limit: more tabs would be too narrow to read, and each has threads of its own.
inline constexpr std::size_t kMaxTabs = 12;

struct OpenTab {
  std::string path = {};  // empty: nothing is open
  Tone tone = Tone::kQuiet;
  std::string verdict = {};  // its headline
  bool runs = false;         // a job is running
};

struct OpenTabs {
  std::vector<OpenTab> tabs;
  std::size_t shown = 0;  // index
  std::uint64_t id = 0;   // of the shown tab; unlike an index it is never reused
};

struct TabRequest {
  enum class Kind : std::uint8_t { kNew, kClose, kShow, kShowSame };
  Kind kind = Kind::kNew;
  std::size_t tab = 0;                   // for kClose, kShow, kShowSame
  std::optional<OpenCommand> open = {};  // for kNew: the checkpoint to open
};

// The last part of each path, with as many parts before it as are needed to distinguish them.
std::vector<std::string> tab_names(const std::vector<OpenTab>& tabs);

}  // namespace shw
