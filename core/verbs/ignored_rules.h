// Rules whose findings a person does not want to hear of: --ignore RULE, and `ignore = ["RULE"]` in
// shardwright.toml or under [tool.shardwright] of pyproject.toml, of the folder that one stands in.
// Never of the checkpoint's folder: what lies there must not silence what is said about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/rules/check.h"

namespace shw::verbs {

// `ignore` in a text of TOML, under `section` (empty: before the first section). Strings in a list,
// over one line or several; all else is passed over. kUsage where the list does not end.
Result<std::vector<std::string>> ignored_in_toml(std::string_view text, std::string_view section,
                                                 const std::string& source);
// What was typed, and what the files in `folder` say (empty: no file is read), each once. kUsage
// for a rule that does not exist.
Result<std::vector<std::string>> ignored_rules(const std::vector<std::string>& typed,
                                               const std::string& folder);

// Takes findings of these rules out. What was found and ignored then stands under what was not
// judged, with its count, so that the verdict says no more than it may.
void ignore_findings(CheckReport& report, const std::vector<std::string>& rules);

}  // namespace shw::verbs
