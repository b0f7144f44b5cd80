// The newest of several saved steps by the names of their files or folders.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/natural_order.h"
#include "core/formats/chosen_step.h"
#include "core/io/source.h"

namespace shw {

using NaturalSet = std::set<std::string, decltype(&natural_less)>;

// "checkpoint-#"; empty unless a number ends the name, as in "epoch=3-step=900.ckpt" before the
// suffix.
std::string step_pattern(std::string_view name);
std::vector<std::string> names_except(const NaturalSet& names, const std::string& chosen);
// For a folder of several .ckpt files, as Lightning writes them: last.ckpt, or the one with the
// greatest numbers. `folder` is then the file.
std::optional<ChosenStep> chosen_file(std::span<const Entry> entries);

}  // namespace shw
