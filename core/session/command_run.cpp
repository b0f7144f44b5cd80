#include "core/session/command_run.h"

#include <filesystem>

#include "core/formats/open.h"
#include "core/io/path_suffix.h"
#include "core/io/remote/remote_path.h"
#include "core/io/store.h"
#include "core/model/evidence.h"
#include "core/repair/run/in_place.h"
#include "core/session/disk_run.h"
#include "core/verbs/abandon_missing.h"
#include "core/verbs/place_mark.h"
#include "core/verbs/plan_file.h"
#include "core/verbs/run/newest_step.h"
#include "core/verbs/transforms.h"
#include "core/verbs/verbs_over_ssh.h"
#include "core/verbs/view_file.h"

namespace shw {
namespace {

template <class T>
std::shared_ptr<const T> shared(T&& value) {
  return std::make_shared<const T>(std::move(value));
}

std::optional<TensorId> first_tensor_among_subjects(const Checkpoint& checkpoint,
                                                    const Finding& finding) {
  for (const std::string& subject : finding.subjects) {
    if (auto tensor = checkpoint.find(subject)) return tensor;
  }
  return std::nullopt;
}

std::vector<std::string> skipped_newer_steps(const std::string& asked,
                                             const std::vector<verbs::NewestStep>& settled) {
  for (const verbs::NewestStep& step : settled) {
    if (step.asked == asked) return step.passed_over;
  }
  return {};
}

// Remote inputs are not tested here: opening them reports errors.
std::vector<std::string> drop_missing_inputs(OpenCommand& open) {
  std::vector<std::string> left;
  for (std::string* path : {&open.spec, &open.against}) {
    std::error_code failed;
    if (path->empty() || is_remote(*path) || verbs::is_step_alias(*path) ||
        std::filesystem::exists(verbs::expanded_path(*path), failed) ||
        parse_computed_suffix(*path))
      continue;
    left.push_back((path == &open.spec ? "the spec " : "the reference ") + *path);
    path->clear();
  }
  return left;
}

}  // namespace

Result<Change> run_open(const Snapshot& before, const Command& command, Progress* progress) {
  OpenCommand c = as<OpenCommand>(command);
  VerbOptions options;
  std::shared_ptr<const std::vector<verbs::Pin>> pins;
  if (verbs::is_view_file(verbs::expanded_path(c.path))) {
    SHW_TRY(verbs::SavedView view, verbs::read_view_file(verbs::expanded_path(c.path)));
    options.depth = view.depth;
    pins = std::make_shared<const std::vector<verbs::Pin>>(std::move(view.pins));
    c = {std::move(view.checkpoint), std::move(view.spec),
         std::move(view.against),    std::move(view.mesh),
         std::move(view.tensor),     std::move(view.tile),
         std::move(view.finding),    true};
  }
  std::vector<std::string> left_aside;
  if (c.remembered) left_aside = drop_missing_inputs(c);
  options.checkpoint = verbs::expanded_path(c.path);
  options.spec = verbs::expanded_path(c.spec);
  options.against = verbs::expanded_path(c.against);
  options.mesh = c.mesh;
  const std::string asked = options.checkpoint;
  SHW_TRY(std::vector<verbs::NewestStep> settled, verbs::resolve_newest_steps(options, progress));
  for (std::string* path : {&options.checkpoint, &options.spec, &options.against})
    *path = verbs::absolute_path(std::move(*path));
  // A spec or reference applies to one step, so the command line's choice of step is opened.
  const bool judges_one = !options.spec.empty() || !options.against.empty();
  std::shared_ptr<const verbs::RunSteps> run;  // of the only step of a folder
  if (!judges_one && verbs::is_run_folder(options.checkpoint)) {
    run = list_opened_run(before, options.checkpoint);
    // A folder with one step opens that step. Opened again, it shows the run.
    const bool is_known = before.run != nullptr && before.run->path == run->path;
    if (run->steps.size() != 1 || run->not_read != 0 || is_known) return show_run(options, run);
    options.checkpoint = run->steps.front().path;
  }
  SHW_TRY(verbs::Opened opened, verbs::open(options, progress));
  auto disk = std::make_shared<const verbs::DiskState>(verbs::disk_state(*opened.checkpoint));
  bool can_undo = false;
  if (opened.checkpoint->directory() != nullptr) {
    auto state = in_place_state(*opened.checkpoint->directory());
    can_undo = state && *state == InPlace::kDone;
  }
  auto stopped = std::make_shared<const verbs::StoppedRuns>(
      verbs::find_stopped_runs(posix_store(), *opened.checkpoint, options.checkpoint));
  verbs::SshUse over_ssh = verbs::ssh_use(options);
  // Pins belong to the checkpoint, so they stay when it is opened again.
  if (pins == nullptr && options.checkpoint == before.options.checkpoint) pins = before.pins;
  return [options = std::move(options), opened = std::move(opened), c, can_undo, over_ssh, disk,
          stopped, left_aside, pins, run,
          passed_over = skipped_newer_steps(asked, settled)](Snapshot& s) {
    s = blank(s);
    if (run != nullptr) s.run = run;
    s.can_undo = can_undo;
    s.stopped = stopped;
    s.runs_over_ssh = over_ssh.is_possible;
    s.why_not_over_ssh = over_ssh.why_not;
    s.disk = disk;
    s.options = options;
    s.pins = pins;
    s.checkpoint = opened.checkpoint;
    s.spec = opened.spec;
    s.reference = opened.reference;
    s.is_against_itself = opened.is_against_itself;
    s.mesh = opened.mesh;
    s.passed_over = passed_over;
    s.left_aside = left_aside;
    if (!c.tensor.empty()) s.tensor = s.checkpoint->find(c.tensor);
    if (s.tensor && !c.tile.empty()) s.chunk = tile_of_mark(*s.checkpoint, *s.tensor, c.tile);
    s.wanted_finding = c.finding;
  };
}

namespace {

Severity worst_severity(const CheckReport& report) {
  Severity worst = Severity::kInfo;
  for (const Finding& finding : report.findings) worst = std::max(worst, finding.severity);
  return worst;
}

}  // namespace

Result<Change> run_check(const Snapshot& before, const Command& command, Progress* progress) {
  // The steps of a run are checked one by one by RunCommand.
  if (before.checkpoint == nullptr && before.run != nullptr) return Change([](Snapshot&) {});
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  std::optional<Depth> depth = as<CheckCommand>(command).depth;
  // The open checkpoint was read before its files were repaired.
  if (is_repaired_in_place(before)) return open_and_check_again(before, depth, progress);
  // The depth given when opening applies until the user chooses another one.
  if (!depth && before.report == nullptr) depth = before.options.depth;
  const bool over_ssh = before.runs_over_ssh && depth == Depth::kData;
  SHW_TRY(CheckReport made,
          over_ssh ? verbs::check_over_ssh(before.options, before.report.get(), progress)
                   : verbs::check(verb_inputs(before), depth, progress));
  return [depth, report = shared(std::move(made))](Snapshot& s) {
    s.options.depth = depth;
    // The finding that is being read stays, unless a worse one was found.
    const bool is_read = s.report != nullptr && s.finding && *s.finding < s.report->findings.size();
    if (is_read && s.wanted_finding.empty() && worst_severity(*report) <= worst_severity(*s.report))
      s.wanted_finding = finding_mark(s.report->findings[*s.finding]);
    s.report = report;
    s.plan = nullptr;
    // A user's edits stay available after a new plan is made.
    bool edited = s.edits != nullptr && s.edits->all.size() > 1;
    if (edited && !is_plan_executed(s)) s.edits_before = s.edits;
    s.edits = nullptr;
    s.outlook = nullptr;
    s.options.plan.clear();
    s.not_in_place.reset();
    s.finding = finding_of_mark(report->findings, std::exchange(s.wanted_finding, {}));
    if (s.finding) return;
    if (report->findings.empty() || report->findings.front().severity == Severity::kInfo) return;
    s.finding = 0;
    if (!s.tensor) s.tensor = first_tensor_among_subjects(*s.checkpoint, report->findings.front());
  };
}

// The mesh changes what rules conclude, so the report is dropped.
Result<Change> run_mesh(const Snapshot&, const Command& command, Progress*) {
  const std::string& text = as<MeshCommand>(command).text;
  std::optional<Mesh> mesh;
  if (!text.empty()) {
    SHW_TRY(mesh, parse_mesh(text));
  }
  return [text, mesh](Snapshot& s) {
    s.options.mesh = text;
    s.mesh = mesh;
    s.report = nullptr;
    s.plan = nullptr;
    s.edits = nullptr;
    s.edits_before = nullptr;
    s.outlook = nullptr;
    s.options.plan.clear();
    s.not_in_place.reset();
    s.finding.reset();
  };
}

namespace {

Result<Plan> plan_on_remote_host(const Snapshot& before, const std::string& fill,
                                 Progress* progress) {
  if (!before.runs_over_ssh)
    return fail(ErrorKind::kUsage, "the plan cannot be made on that machine", {},
                before.why_not_over_ssh);
  VerbOptions options = before.options;
  options.fill = fill;
  return verbs::plan_over_ssh(verb_inputs(before), options, progress);
}

}  // namespace

Result<Change> run_plan(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.report == nullptr)
    return fail(ErrorKind::kUsage, "check it first: a plan is made from findings");
  const auto& wanted = as<PlanCommand>(command);
  if (wanted.keeps_existing_plan && before.plan != nullptr) return Change([](Snapshot&) {});
  VerbOptions options;
  options.fill = wanted.fill;
  SHW_CHECK(verbs::resolve_newest_steps(options, progress));
  constexpr std::string_view kFrom = "from:";
  if (options.fill.starts_with(kFrom))
    options.fill = std::string(kFrom) +
                   verbs::absolute_path(verbs::expanded_path(options.fill.substr(kFrom.size())));
  const std::string& fill = options.fill;
  SHW_TRY(std::optional<Plan> filled,
          verbs::plan_dropping_missing_data(verb_inputs(before), fill, progress));
  const bool fills_files = filled.has_value();
  if (!filled) {
    SHW_TRY(filled, wanted.on_remote_host
                        ? plan_on_remote_host(before, fill, progress)
                        : verbs::plan(verb_inputs(before), *before.report, fill, progress));
  }
  if (!wanted.then.empty()) {
    options.then = {wanted.then};
    SHW_TRY(const auto remarks, verbs::add_steps(verb_inputs(before), options, *filled, progress));
    // The added step repairs the finding that suggested it, so that finding is no longer undecided.
    std::erase_if(filled->undecided, [&](const Finding& finding) {
      const auto* step = find_evidence<std::string>(finding, "suggested_step");
      return step != nullptr && *step == wanted.then;
    });
  }
  auto whole = shared(std::move(*filled));
  const PlanEdits* edits = before.edits ? before.edits.get() : before.edits_before.get();
  if (is_plan_executed(before)) edits = nullptr;
  DisabledSteps off(whole->operations.size(), false);
  if (edits != nullptr && !fills_files) off = steps_off_in_new_plan(edits->edit(), *whole);
  std::string what = !wanted.then.empty() ? "planned, with the step that a finding suggests"
                     : wanted.on_remote_host && !fills_files ? "planned over there"
                     : fill.empty()                          ? "planned"
                                    : "planned, what is lost filled with: " + fill;
  // A plan that fills lost files consists of steps, which no finding has proposed.
  SHW_TRY(PlanEdit edit, make_edit(verb_inputs(before), fills_files ? nullptr : before.report.get(),
                                   whole, std::move(off), std::move(what)));
  edit.fill = fill;
  if (!wanted.then.empty())
    edit.notes = {"This checkpoint cannot prove this step: compare the result with a good one."};
  if (fills_files) edit.suffix = ApplyOptions{}.suffix;
  return [made = with_edit(edits, std::move(edit))](Snapshot& s) { set_plan_edits(s, made); };
}

Result<Change> run_verify(const Snapshot& before, const Command&, Progress* progress) {
  const std::string& path = before.repaired ? before.repaired->output : before.options.checkpoint;
  const bool over_ssh = before.runs_over_ssh && verbs::is_on_machine_of(before.options, path);
  SHW_TRY(VerifyReport made,
          over_ssh ? verbs::verify_over_ssh(path, progress) : verbs::verify(path, progress));
  return [verified = shared(std::move(made))](Snapshot& s) { s.verified = verified; };
}

Result<Change> select_tensor(const Snapshot& before, const Command& command, Progress*) {
  const std::string& fqn = as<SelectTensorCommand>(command).fqn;
  if (before.checkpoint == nullptr) return Change([](Snapshot&) {});
  auto found = before.checkpoint->find(fqn);
  if (!found) return fail(ErrorKind::kUsage, "no such tensor", {"", std::nullopt, fqn});
  return [found](Snapshot& s) {
    s.tensor = found;
    s.chunk.reset();
  };
}

Result<Change> select_chunk(const Snapshot& before, const Command& command, Progress*) {
  std::optional<ChunkId> chunk = as<SelectChunkCommand>(command).chunk;
  if (before.checkpoint == nullptr) return Change([](Snapshot&) {});
  if (chunk && index_of(*chunk) >= before.checkpoint->chunk_count()) chunk.reset();
  return [chunk](Snapshot& s) { s.chunk = chunk; };
}

Result<Change> select_finding(const Snapshot& before, const Command& command, Progress*) {
  std::size_t index = as<SelectFindingCommand>(command).index;
  if (before.report == nullptr || index >= before.report->findings.size())
    return Change([](Snapshot&) {});
  auto tensor = first_tensor_among_subjects(*before.checkpoint, before.report->findings[index]);
  return [index, tensor](Snapshot& s) {
    s.finding = index;
    if (!tensor) return;
    s.tensor = tensor;
    s.chunk.reset();
  };
}

}  // namespace shw
