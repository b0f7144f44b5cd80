// A checkpoint written in another form: other format, program, tiles or dtype. Shared by the
// command line and the desktop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// What `convert --to` takes: formats and programs.
const std::vector<std::string>& convert_targets();
// The target that a word names: the target's own name, or a format's ("megatron-dist").
Result<std::string> convert_target(const std::string& word);

// Name of the result next to the checkpoint that was opened: "-merged", "-averaged", ... where the
// path asks for a computed one, otherwise "-" and the target.
std::string suffix_of_result(const std::string& opened_as, const std::string& to);

// kUnsupported if there are findings: rewritten, they could no longer be recognised.
Status refuse_damaged_checkpoint(const std::vector<Finding>& findings,
                                 const std::string& checkpoint);

// Findings above info in the further inputs of a computed checkpoint, as "RULE  PATH: CAUSE".
// Findings that are errors are refused. Adapters are checked at every byte unless `depth` is given.
Result<std::vector<std::string>> check_other_inputs(const std::string& opened_as,
                                                    std::optional<Depth> depth, Progress* progress);

struct OutputForm {
  std::string to;          // one of convert_targets(); empty: the format that is kept
  std::string mesh = {};   // "dp=8,tp=2"; empty: tiles as the format writes them
  std::string dtype = {};  // of floating weights; empty: unchanged
  bool weights_only = false;

  bool operator==(const OutputForm&) const = default;
};

struct WriteAsPlan {
  Plan plan;
  std::vector<std::string> notes = {};  // one line each: what is dropped, cast or kept
  std::string suffix = {};
};
// Refuses a damaged source and damaged inputs. `opened_as`: the path as typed.
Result<WriteAsPlan> plan_to_write_as(const Opened& opened, const std::string& opened_as,
                                     const OutputForm& wanted, std::optional<Depth> depth,
                                     Progress* progress);

}  // namespace shw::verbs
