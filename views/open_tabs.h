// The checkpoints that are open beside one another: the strip above the window, and what a person
// asks of it. Who owns them is not a view's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/session/command.h"

namespace shw {

enum class Tone : std::uint8_t { kQuiet, kOk, kBad, kWarn, kUnknown };  // of a verdict

// More would be too narrow to read, and each has threads of its own.
inline constexpr std::size_t kMostTabs = 12;

struct OpenTab {
  std::string path = {};  // empty: nothing is open in it
  Tone tone = Tone::kQuiet;
  std::string verdict = {};  // the headline
  bool runs = false;         // a job is under way
};

struct OpenTabs {
  std::vector<OpenTab> tabs;
  std::size_t shown = 0;  // index
  std::uint64_t id = 0;   // of the shown tab: never used again, unlike an index
};

struct TabRequest {
  enum class Kind : std::uint8_t { kNew, kClose, kShow, kShowSame };
  Kind kind = Kind::kNew;
  std::size_t tab = 0;                   // kClose, kShow, kShowSame: which one
  std::optional<OpenCommand> open = {};  // kNew: what is opened in it
};

// The last parts of the paths, with as many parts before them as tell them apart.
std::vector<std::string> tab_names(const std::vector<OpenTab>& tabs);

}  // namespace shw
