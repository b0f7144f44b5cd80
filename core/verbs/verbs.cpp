#include "core/verbs/verbs.h"

#include <algorithm>

#include "core/exec/device_numbers.h"
#include "core/exec/team_device.h"
#include "core/facts/storage/filled.h"
#include "core/formats/open.h"
#include "core/formats/replicas.h"
#include "core/io/read_whole.h"
#include "core/io/source.h"
#include "core/io/store.h"
#include "core/model/index_only_tensors.h"
#include "core/repair/proof/certified_folder.h"
#include "core/report/hdf5_report.h"
#include "core/report/report.h"
#include "core/rules/rules.h"
#include "core/verbs/command_line.h"
#include "core/verbs/computed_path.h"
#include "core/verbs/mapped_reference.h"
#include "core/verbs/names/choose_tensors.h"
#include "core/verbs/names/named_nodes.h"
#include "core/verbs/wrong_conversions.h"

namespace shw::verbs {

namespace {

// A checkpoint compared with itself is always equal; two files of one folder are different.
bool is_same_checkpoint(const Checkpoint& a, const Checkpoint& b) {
  if (a.directory() == nullptr || b.directory() == nullptr) return false;
  if (!std::ranges::equal(a.files(), b.files(), {}, &FileRow::path, &FileRow::path)) return false;
  auto first = posix_store().resolved(a.directory()->name());
  auto second = posix_store().resolved(b.directory()->name());
  return first && second && *first == *second;
}

Error index_only_error(const Checkpoint& checkpoint, const UnclaimedStorageRecord& tensor) {
  return {ErrorKind::kDamaged,
          "cannot be read: only the tensor's name is known",
          {checkpoint.file(tensor.item.file).path},
          "Bring the file back."};
}

}  // namespace

Result<Opened> open(const VerbOptions& verb_options, Progress* progress) {
  Opened opened;
  opened.memory = verb_options.memory;
  opened.ranks_per_node = verb_options.ranks_per_node;
  if (!verb_options.spec.empty()) {
    SHW_TRY(Spec spec, load_spec(verb_options.spec, progress));
    opened.spec = std::make_shared<const Spec>(std::move(spec));
  }
  if (!verb_options.mesh.empty()) {
    SHW_TRY(opened.mesh, parse_mesh(verb_options.mesh));
  }
  if (!verb_options.against.empty()) {
    SHW_TRY(opened.reference, open_requested_for_comparison(verb_options.against, progress));
  }
  SHW_TRY(opened.checkpoint, open_requested(verb_options.checkpoint, progress));
  opened.is_against_itself =
      opened.reference != nullptr && is_same_checkpoint(*opened.checkpoint, *opened.reference);
  if (opened.is_against_itself) opened.reference = nullptr;
  return opened;
}

Result<CheckReport> check(const Opened& opened, std::optional<Depth> depth, Progress* progress,
                          Team* team, CountedChunks* counted) {
  CheckOptions options;
  options.depth = depth;
  options.spec = opened.spec;
  options.mesh = opened.mesh;
  options.reference = opened.reference;
  std::optional<MappedVerdict> judged;
  if (opened.reference != nullptr) {
    SHW_TRY(judged, compare_through_map(opened.checkpoint, opened.reference, opened.mapping, depth,
                                        progress));
    if (judged) options.reference = nullptr;
  }
  options.team = team;
  options.counted = counted;
  options.memory = opened.memory;
  SHW_TRY(CheckReport report, shw::check(*opened.checkpoint, options, progress));
  add_node_names(*opened.checkpoint, opened.ranks_per_node, report.findings);
  if (judged)
    add_mapped_verdict(*opened.checkpoint, std::move(*judged), report);
  else if (opened.reference != nullptr)
    report_wrong_conversions(opened.checkpoint, opened.reference, opened.mapping, depth, report,
                             progress);
  if (opened.is_against_itself)
    report.unjudged.push_back({"checks that need another checkpoint: --against names this one",
                               "--against another step, or a copy"});
  return report;
}

Result<CountedStatistics> stats(const Opened& opened, std::span<const std::string> names,
                                const DeviceOptions& device, Progress* progress, Team* team,
                                const CountedChunks* known) {
  const Checkpoint& checkpoint = *opened.checkpoint;
  SHW_TRY(std::vector<TensorId> tensors, choose_tensors(checkpoint, names));
  SHW_TRY(const Executors executors,
          choose_statistics_executors(device, statistics_loads_by_dtype(checkpoint, tensors)));
  CountedStatistics counted;
  SHW_TRY(counted.tensors, statistics_of(checkpoint, tensors, progress, team,
                                         statistics_backends(executors), known));
  counted.device = executors.use();
  if (team != nullptr) {
    SHW_TRY(counted.device, gather_device_use(*team, counted.device));
  }
  for (const UnclaimedStorageRecord& tensor :
       names.empty() ? index_only_tensors(checkpoint) : std::span<const UnclaimedStorageRecord>{}) {
    TensorStatistics unknown;
    unknown.fqn = tensor.fqn;
    unknown.error = index_only_error(checkpoint, tensor);
    counted.tensors.push_back(std::move(unknown));
  }
  if (names.empty()) counted.unread = unreadable_subjects(checkpoint);
  return counted;
}

Result<std::vector<TensorStatistics>> stats(const Opened& opened,
                                            std::span<const std::string> names, Progress* progress,
                                            Team* team, const CountedChunks* known) {
  SHW_TRY(CountedStatistics counted,
          stats(opened, names, DeviceOptions{DeviceKind::kCpu}, progress, team, known));
  return std::move(counted.tensors);
}

Result<HashedTensors> hash(const Opened& opened, std::span<const std::string> names,
                           Progress* progress, Team* team) {
  const Checkpoint& checkpoint = *opened.checkpoint;
  SHW_TRY(const std::vector<TensorId> tensors, choose_tensors(checkpoint, names));
  HashedTensors hashed;
  SHW_TRY(hashed.tensors, tensor_hashes(checkpoint, tensors, opened.memory, progress, team));
  if (!names.empty()) return hashed;
  for (const UnclaimedStorageRecord& tensor : index_only_tensors(checkpoint))
    hashed.tensors.push_back({tensor.fqn,
                              Dtype::kUnknown,
                              {},
                              tl::unexpected<Error>(index_only_error(checkpoint, tensor))});
  hashed.unread = unreadable_subjects(checkpoint);
  return hashed;
}

namespace {

// Notes in the plan, and so later in the certificate, which entries ranks saved differently.
Status record_entries_differing_by_rank(const Checkpoint& checkpoint, Plan& plan,
                                        Progress* progress, Team* team) {
  if (!plan.repairs() || checkpoint.directory() == nullptr) return {};
  SHW_TRY(plan.of_other_ranks, entries_differing_between_ranks(checkpoint, progress, team));
  plan.lossless = plan.lossless && plan.of_other_ranks.empty();
  return {};
}

}  // namespace

Result<Plan> plan(const Opened& opened, const CheckReport& report, const std::string& fill,
                  Progress* progress, Team* team) {
  PlanOptions options;
  options.spec = report.spec;
  options.mesh = opened.mesh;
  SHW_CHECK(choose_fill(fill, options, progress));
  SHW_TRY(Plan made, make_plan(*opened.checkpoint, report, options, progress));
  SHW_CHECK(record_entries_differing_by_rank(*opened.checkpoint, made, progress, team));
  return made;
}

Result<Plan> read_plan(const Opened& opened, const std::string& path, Progress* progress,
                       Team* team) {
  SHW_TRY(auto source, open_file(path, path));
  SHW_TRY(Bytes bytes, read_whole(*source));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SHW_TRY(const std::string file, posix_store().resolved(path));
  SHW_TRY(Plan made,
          plan_from_json(*opened.checkpoint, text, path, file.substr(0, file.rfind('/') + 1)));
  SHW_CHECK(record_entries_differing_by_rank(*opened.checkpoint, made, progress, team));
  return made;
}

Result<RepairResult> repair(const Opened& opened, const Plan& plan, const ApplyOptions& options,
                            Progress* progress) {
  return apply_plan(*opened.checkpoint, plan, options, progress);
}

Result<std::vector<Finding>> findings_of_result(const Opened& source, const std::string& output,
                                                std::optional<Depth> depth, Progress* progress,
                                                Team* team) {
  Opened result = source;
  SHW_TRY(result.checkpoint, open_checkpoint(output, progress));
  SHW_TRY(CheckReport report, check(result, depth, progress, team));
  std::erase_if(report.findings,
                [](const Finding& finding) { return finding.severity == Severity::kInfo; });
  return std::move(report.findings);
}

bool is_filled_elements_finding(const Finding& finding) {
  return rule_of(finding).outcome == RunOutcome::kIsFilled;
}

Result<VerifyReport> verify(const std::string& named, Progress* progress,
                            const std::string& against, Team* team, std::uint64_t memory) {
  if (against.empty()) return verify_repair(named, progress, team);
  const std::string checkpoint = folder_that_certifies(named);
  SHW_TRY(auto source, open_requested_for_comparison(against, progress));
  auto opened = open_checkpoint(checkpoint, progress);
  SHW_TRY(auto broken,
          verdict_if_unopenable(checkpoint, opened ? nullptr : &opened.error(), progress, team));
  if (broken) return std::move(*broken);
  SHW_TRY(auto result, std::move(opened));
  if (is_same_checkpoint(*source, *result))
    return fail(ErrorKind::kUsage, "is the checkpoint to verify", {against},
                "give the source that it was made from");
  return verify_repair(*result, progress, source, team, memory);
}

Status undo(const std::string& checkpoint) {
  return undo_repair(checkpoint);
}

PageFormat page_format(const std::string& file_name) {
  for (const char* ending : {".html", ".json", ".sarif"}) {
    if (file_name.ends_with(ending)) return *page_format_of_word(ending + 1);
  }
  if (file_name.ends_with(".h5") || file_name.ends_with(".hdf5")) return PageFormat::kHdf5;
  if (file_name.ends_with(".htm")) return PageFormat::kHtml;
  return file_name.ends_with(".xml") ? PageFormat::kJunit : PageFormat::kMarkdown;
}

std::optional<PageFormat> page_format_of_word(std::string_view word) {
  constexpr std::pair<std::string_view, PageFormat> kWords[] = {
      {"md", PageFormat::kMarkdown}, {"html", PageFormat::kHtml},   {"json", PageFormat::kJson},
      {"sarif", PageFormat::kSarif}, {"junit", PageFormat::kJunit}, {"github", PageFormat::kGithub},
      {"hdf5", PageFormat::kHdf5}};
  for (const auto& [known, format] : kWords) {
    if (word == known) return format;
  }
  return std::nullopt;
}

namespace {

// Reads the certificate next to the checkpoint; verify checks its contents. An unreadable
// certificate is a finding.
std::optional<Certificate> certificate_in_folder(const Checkpoint& checkpoint) {
  const auto& directory = checkpoint.directory();
  if (directory == nullptr) return std::nullopt;
  auto certificate = certificate_in(*directory);
  if (!certificate) return std::nullopt;
  return std::move(*certificate);
}

}  // namespace

std::optional<std::string> ci_error_report(const VerbOptions& verb_options, PageFormat format,
                                           const std::string& error) {
  const CheckContext context{verb_options.checkpoint, command_line("check", verb_options)};
  if (format == PageFormat::kSarif) return failed_sarif(error, context);
  if (format == PageFormat::kJunit) return failed_junit(error, context);
  if (format == PageFormat::kGithub) return failed_github(error, context);
  return std::nullopt;
}

std::string report(const Opened& opened, const VerbOptions& verb_options, const CheckReport& found,
                   const Plan* plan, PageFormat format, const CheckContext& context,
                   std::span<const TensorStatistics> statistics, std::span<const PageView> views) {
  CheckContext with_command = context;
  with_command.command = command_line("check", verb_options);
  with_command.checkpoint = opened.checkpoint.get();
  if (format == PageFormat::kJson) return check_to_json(found, with_command);
  if (format == PageFormat::kSarif) return report_sarif(*opened.checkpoint, found, with_command);
  if (format == PageFormat::kJunit) return report_junit(found, context);
  if (format == PageFormat::kGithub) return report_github(found, context);
  std::string commands = with_command.command;
  VerbOptions mending = verb_options;
  mending.out.clear();  // this report's path must not become the repair's
  if (plan != nullptr && !plan->empty())
    commands += "\n" + repair_command_line(*opened.checkpoint, mending);
  ReportInput input{*opened.checkpoint, found,    plan,      found.spec.get(),
                    commands,           &context, statistics};
  input.views = views;
  auto certificate = certificate_in_folder(*opened.checkpoint);
  if (certificate) input.certificate = &*certificate;
  return format == PageFormat::kHtml ? report_html(input) : report_markdown(input);
}

Result<std::uint64_t> report_tables(const Opened& opened, const VerbOptions& verb_options,
                                    const CheckReport& found, const CountedChunks* counted,
                                    Progress* progress) {
  std::vector<TensorStatistics> statistics;
  if (found.depth == Depth::kData) {
    SHW_TRY(statistics, stats(opened, {}, progress, nullptr, counted));
  }
  ReportInput input{*opened.checkpoint, found, nullptr, found.spec.get(),
                    command_line("check", verb_options)};
  return write_hdf5_report(input, statistics, verb_options.out, progress);
}

}  // namespace shw::verbs
