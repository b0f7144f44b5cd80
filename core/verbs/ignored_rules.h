// Ignored rules: --ignore RULE, and `ignore = ["RULE"]` in shardwright.toml or under
// [tool.shardwright] in pyproject.toml of the working directory. Never from the checkpoint's
// folder, which must not silence findings about itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/rules/check.h"

namespace shw::verbs {

// The `ignore` list in TOML text under `section` (empty: before the first section). Lists of
// strings on one or several lines; other content is skipped. kUsage if the list does not end.
Result<std::vector<std::string>> ignored_in_toml(std::string_view text, std::string_view section,
                                                 const std::string& source);
// Ignored rules from options and from files in `folder` (empty: none), without duplicates. kUsage
// for unknown rules.
Result<std::vector<std::string>> ignored_rules(const std::vector<std::string>& typed,
                                               const std::string& folder);

// Removes findings of these rules and adds their number to what was not checked, so that the
// verdict stays honest.
void ignore_findings(CheckReport& report, const std::vector<std::string>& rules);

}  // namespace shw::verbs
