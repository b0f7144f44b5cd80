// The verbs as pure functions. The command line and the desktop call these; they differ only in how
// they ask, wait and display.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/compare/tensor_hashes.h"
#include "core/exec/device.h"
#include "core/facts/values/tensor_statistics.h"
#include "core/mesh/mesh.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/report/ci_forms.h"
#include "core/report/page_view.h"
#include "core/rules/check.h"
#include "core/spec/spec.h"
#include "core/verbs/map_options.h"
#include "core/verbs/options.h"

namespace shw::verbs {

// A checkpoint with the user's additional inputs.
struct Opened {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const Spec> spec;             // null without --spec
  std::shared_ptr<const Checkpoint> reference;  // null without --against
  std::optional<Mesh> mesh;                     // nullopt without --mesh
  std::uint64_t memory = kDefaultMemory;        // limit for a check, in bytes
  std::uint32_t ranks_per_node = 0;             // 0: not given
  MapOptions mapping = {};                      // between the checkpoint and the reference
  // True if --against named the checkpoint itself; then there is no reference.
  bool is_against_itself = false;
};

// Reads small inputs such as the spec first, so that mistakes in them show before terabytes are
// opened.
Result<Opened> open(const VerbOptions& verb_options, Progress* progress = nullptr);

Result<CheckReport> check(const Opened& opened, std::optional<Depth> depth,
                          Progress* progress = nullptr, Team* team = nullptr,
                          CountedChunks* counted = nullptr);

// Statistics of the tensors that match names or shell patterns, or of all. All also includes
// tensors of which only the name exists, with an error.
Result<std::vector<TensorStatistics>> stats(const Opened& opened,
                                            std::span<const std::string> names,
                                            Progress* progress = nullptr, Team* team = nullptr,
                                            const CountedChunks* known = nullptr);
// Statistics of all tensors, the device that counted, and what could not be read.
struct CountedStatistics {
  std::vector<TensorStatistics> tensors;
  DeviceUse device;
  std::vector<std::string> unread;  // files or records with unknown content
};
// Like stats(), counted on `device`. Chunks in `known` are not read again.
Result<CountedStatistics> stats(const Opened& opened, std::span<const std::string> names,
                                const DeviceOptions& device, Progress* progress = nullptr,
                                Team* team = nullptr, const CountedChunks* known = nullptr);

// Hashes of the tensors that stats() would select, in the same order.
Result<HashedTensors> hash(const Opened& opened, std::span<const std::string> names,
                           Progress* progress = nullptr, Team* team = nullptr);

// Plan for the findings of `report`; `fill` is VerbOptions::fill. If ranks have indices of their
// own, also finds entries in which ranks differ: only one value is copied.
Result<Plan> plan(const Opened& opened, const CheckReport& report, const std::string& fill,
                  Progress* progress = nullptr, Team* team = nullptr);
// Reads a plan file (VerbOptions::plan); the checkpoint is not checked again.
Result<Plan> read_plan(const Opened& opened, const std::string& path, Progress* progress = nullptr,
                       Team* team = nullptr);

Result<RepairResult> repair(const Opened& opened, const Plan& plan, const ApplyOptions& options,
                            Progress* progress = nullptr);
// Checks the output like the source and returns findings above info, so that they do not surprise
// later.
Result<std::vector<Finding>> findings_of_result(const Opened& source, const std::string& output,
                                                std::optional<Depth> depth,
                                                Progress* progress = nullptr, Team* team = nullptr);
// True for a finding about filled elements, which no repair can remove.
bool is_filled_elements_finding(const Finding& finding);

// `against`: the source checkpoint; may be empty. `memory` is as in verify_repair().
Result<VerifyReport> verify(const std::string& checkpoint, Progress* progress = nullptr,
                            const std::string& against = {}, Team* team = nullptr,
                            std::uint64_t memory = kDefaultMemory);
Status undo(const std::string& checkpoint);

enum class PageFormat : std::uint8_t { kMarkdown, kHtml, kJson, kSarif, kJunit, kGithub, kHdf5 };
// The format by the file's extension; Markdown if unknown.
PageFormat page_format(const std::string& file_name);
// "html", "md", "json", "sarif", "junit", "github", "hdf5".
std::optional<PageFormat> page_format_of_word(std::string_view word);
// The page with all contents, or a format for CI. `plan` may be null if nothing can be repaired.
// `statistics` are shown only in HTML.
std::string report(const Opened& opened, const VerbOptions& verb_options, const CheckReport& found,
                   const Plan* plan, PageFormat format, const CheckContext& context = {},
                   std::span<const TensorStatistics> statistics = {},
                   std::span<const PageView> views = {});
// Output for CI after an error; nullopt for formats for people.
std::optional<std::string> ci_error_report(const VerbOptions& verb_options, PageFormat format,
                                           const std::string& error);
// Writes tables for notebooks to said.out, with statistics at data depth; returns the size in
// bytes.
Result<std::uint64_t> report_tables(const Opened& opened, const VerbOptions& verb_options,
                                    const CheckReport& found,
                                    const CountedChunks* counted = nullptr,
                                    Progress* progress = nullptr);

}  // namespace shw::verbs
