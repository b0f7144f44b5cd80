// What a person can do with a checkpoint, as pure functions: the headless program and the desktop
// call these and differ only in how they ask, wait and show.
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

// A checkpoint with all that the person knows about it.
struct Opened {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const Spec> spec;             // null without --spec
  std::shared_ptr<const Checkpoint> reference;  // null without --against
  std::optional<Mesh> mesh;                     // nothing without --mesh
  std::uint64_t memory = kDefaultMemory;        // that a check may take
  MapOptions mapping = {};                      // between the checkpoint and the reference
  // --against named the checkpoint itself, which is as it expects: it is no reference.
  bool is_against_itself = false;
};

// What is said is read first: a spec that cannot be read is known before terabytes are opened.
Result<Opened> open(const VerbOptions& verb_options, Progress* progress = nullptr);

Result<CheckReport> check(const Opened& opened, std::optional<Depth> depth,
                          Progress* progress = nullptr, Team* team = nullptr,
                          CountedChunks* counted = nullptr);

// Of the tensors that are named, by FQN or as a shell pattern, or of all. With all of them come
// those of which only the name is known: their error says so.
Result<std::vector<TensorStatistics>> stats(const Opened& opened,
                                            std::span<const std::string> names,
                                            Progress* progress = nullptr, Team* team = nullptr,
                                            const CountedChunks* known = nullptr);
// The same, counted on what `device` asks for. What `known` has is not read again.
struct CountedStatistics {
  std::vector<TensorStatistics> tensors;
  DeviceUse device;
  std::vector<std::string> unread;  // files, records: what they hold nobody knows
};
Result<CountedStatistics> stats(const Opened& opened, std::span<const std::string> names,
                                const DeviceOptions& device, Progress* progress = nullptr,
                                Team* team = nullptr, const CountedChunks* known = nullptr);

// Of the same tensors, in the same order.
Result<HashedTensors> hash(const Opened& opened, std::span<const std::string> names,
                           Progress* progress = nullptr, Team* team = nullptr);

// From the findings of `report`, filled as `fill` says (VerbOptions::fill). Where each rank has an
// index of its own, what several ranks saved is compared: what differs stays behind.
Result<Plan> plan(const Opened& opened, const CheckReport& report, const std::string& fill,
                  Progress* progress = nullptr, Team* team = nullptr);
// As a person wrote it down (VerbOptions::plan): nothing is checked again.
Result<Plan> read_plan(const Opened& opened, const std::string& path, Progress* progress = nullptr,
                       Team* team = nullptr);

Result<RepairResult> repair(const Opened& opened, const Plan& plan, const ApplyOptions& options,
                            Progress* progress = nullptr);
// What was written, looked at as the source was: findings above info, which a person would
// otherwise meet later.
Result<std::vector<Finding>> still_wrong(const Opened& source, const std::string& output,
                                         std::optional<Depth> depth, Progress* progress = nullptr,
                                         Team* team = nullptr);
// A finding that no repair can take away: elements that are gone and filled.
bool is_only_filled(const Finding& finding);

// `against`: the checkpoint that it was made of; may be empty. `memory`: as of verify_repair().
Result<VerifyReport> verify(const std::string& checkpoint, Progress* progress = nullptr,
                            const std::string& against = {}, Team* team = nullptr,
                            std::uint64_t memory = kDefaultMemory);
Status undo(const std::string& checkpoint);

enum class PageFormat : std::uint8_t { kMarkdown, kHtml, kJson, kSarif, kJunit, kGithub, kHdf5 };
// By the ending of a file's name; Markdown where unknown.
PageFormat page_format(const std::string& file_name);
// "html", "md", "json", "sarif", "junit", "github", "hdf5".
std::optional<PageFormat> page_format_of_word(std::string_view word);
// The page with everything in it, or what CI reads. `plan` may be null: then nothing can be mended.
// `statistics` come with the page that shows them, HTML.
std::string report(const Opened& opened, const VerbOptions& verb_options, const CheckReport& found,
                   const Plan* plan, PageFormat format, const CheckContext& context = {},
                   std::span<const TensorStatistics> statistics = {},
                   std::span<const PageView> views = {});
// What CI reads of a run that ended in an error; nothing for the forms that people read.
std::optional<std::string> failed_report(const VerbOptions& verb_options, PageFormat format,
                                         const std::string& error);
// The tables for a notebook, written to said.out; with the depth data those of the numbers too. How
// many bytes they take.
Result<std::uint64_t> report_tables(const Opened& opened, const VerbOptions& verb_options,
                                    const CheckReport& found,
                                    const CountedChunks* counted = nullptr,
                                    Progress* progress = nullptr);

}  // namespace shw::verbs
