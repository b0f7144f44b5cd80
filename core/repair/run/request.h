// Request of a run that makes a folder, as JSON in its journal: {"verb": "repair", "checkpoint",
// "said", "plan" | "plan_zstd"}, and "integrity" if set. Untrusted when read back, like any file.
#pragma once

#include <string>
#include <string_view>

#include "core/io/store.h"

namespace shw {

struct RepairRequest {
  std::string checkpoint;  // its path, resolved
  std::string said;        // as typed by the user: names the result
  std::string plan;        // JSON, for plan_from_json()
  bool integrity = false;  // ApplyOptions::integrity
};

// `plan` is encoded by encode_stored_plan(), because a journal should not begin with hundreds of
// megabytes for millions of tiles. `verb` is the verb that can read it.
Result<std::string> request_to_json(const Store& store, std::string_view verb,
                                    const std::string& plan, const std::string& said,
                                    bool integrity = false);
// `source` names the JSON in errors.
Result<RepairRequest> request_from_json(std::string_view json, std::string_view verb,
                                        const std::string& source);
// "repair", or another verb; empty if it is not a request.
std::string verb_of_request(std::string_view json);

// The typed path if it still means the same place, otherwise the resolved path.
std::string as_typed(const Store& store, const std::string& said, const std::string& resolved);

}  // namespace shw
