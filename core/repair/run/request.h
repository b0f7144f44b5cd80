// What is asked of a run that makes a folder, as JSON that its journal keeps: {"verb": "repair",
// "checkpoint", "said", "plan" | "plan_zstd"}, and "integrity" where that is asked for. Read back,
// it is hostile like any file.
#pragma once

#include <string>
#include <string_view>

#include "core/io/store.h"

namespace shw {

struct RepairRequest {
  std::string checkpoint;  // its path, resolved
  std::string said;        // as the person wrote it: how the result names it
  std::string plan;        // JSON, for plan_from_json()
  bool integrity = false;  // ApplyOptions::integrity
};

// `plan`: as keep_plan() keeps it: the one of millions of tiles has hundreds of megabytes, which a
// journal would be begun with and read again. `verb` reads it.
Result<std::string> request_to_json(const Store& store, std::string_view verb,
                                    const std::string& plan, const std::string& said,
                                    bool integrity = false);
// `source` is what errors call it.
Result<RepairRequest> request_from_json(std::string_view json, std::string_view verb,
                                        const std::string& source);
// "repair", or what another verb calls itself; empty where it is no request.
std::string verb_of_request(std::string_view json);

// The path as it was said, where that still means the same place; else the resolved one.
std::string as_typed(const Store& store, const std::string& said, const std::string& resolved);

}  // namespace shw
