#include "core/session/command_run.h"

#include "core/formats/open.h"

namespace shw {
namespace {

template <class T>
std::shared_ptr<const T> shared(T&& value) {
  return std::make_shared<const T>(std::move(value));
}

std::optional<TensorId> first_tensor(const Checkpoint& checkpoint, const Finding& finding) {
  for (const std::string& subject : finding.subjects) {
    if (auto tensor = checkpoint.find(subject)) return tensor;
  }
  return std::nullopt;
}

}  // namespace

Result<Change> run_open(const Snapshot&, const Command& command, Progress* progress) {
  const auto& c = as<OpenCommand>(command);
  VerbOptions said;
  said.checkpoint = c.path;
  said.spec = c.spec;
  said.against = c.against;
  said.mesh = c.mesh;
  SHW_TRY(verbs::Opened opened, verbs::open(said, progress));
  return [said = std::move(said), opened = std::move(opened), tensor = c.tensor](Snapshot& s) {
    s = blank(s);
    s.said = said;
    s.checkpoint = opened.checkpoint;
    s.spec = opened.spec;
    s.reference = opened.reference;
    s.mesh = opened.mesh;
    s.tensor = s.checkpoint->find(tensor);
  };
}

Result<Change> run_check(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  std::optional<Depth> depth = as<CheckCommand>(command).depth;
  SHW_TRY(CheckReport made, verbs::check(opened_in(before), depth, progress));
  return [depth, report = shared(std::move(made))](Snapshot& s) {
    s.said.depth = depth;
    s.report = report;
    s.plan = nullptr;
    s.not_in_place.reset();
    s.finding.reset();
    if (report->findings.empty() || report->findings.front().severity == Severity::kInfo) return;
    s.finding = 0;
    if (!s.tensor) s.tensor = first_tensor(*s.checkpoint, report->findings.front());
  };
}

// What the person says about the ranks changes what the rules may conclude: the old report goes.
Result<Change> run_mesh(const Snapshot&, const Command& command, Progress*) {
  const std::string& text = as<MeshCommand>(command).text;
  std::optional<Mesh> mesh;
  if (!text.empty()) {
    SHW_TRY(mesh, parse_mesh(text));
  }
  return [text, mesh](Snapshot& s) {
    s.said.mesh = text;
    s.mesh = mesh;
    s.report = nullptr;
    s.plan = nullptr;
    s.not_in_place.reset();
    s.finding.reset();
  };
}

Result<Change> run_plan(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.report == nullptr)
    return fail(ErrorKind::kUsage, "check it first: a plan is made from findings");
  const std::string& fill = as<PlanCommand>(command).fill;
  SHW_TRY(Plan made, verbs::plan(opened_in(before), *before.report, fill, progress));
  Status in_place = check_in_place(*before.checkpoint, made);
  std::optional<Error> why_not;
  if (!in_place) why_not = in_place.error();
  return [fill, why_not, plan = shared(std::move(made))](Snapshot& s) {
    s.said.fill = fill;
    s.plan = plan;
    s.not_in_place = why_not;
  };
}

Result<Change> run_repair(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.plan == nullptr) return fail(ErrorKind::kUsage, "plan it first");
  ApplyOptions options = as<RepairCommand>(command).options;
  options.checkpoint = before.said.checkpoint;
  SHW_TRY(RepairResult made, verbs::repair(opened_in(before), *before.plan, options, progress));
  SHW_TRY(auto after, open_checkpoint(made.output, progress));
  std::optional<Depth> depth;
  if (before.report != nullptr) depth = before.report->depth;
  SHW_TRY(auto wrong, verbs::still_wrong(opened_in(before), made.output, depth, progress));
  std::erase_if(wrong, verbs::is_only_filled);
  return
      [after, repaired = shared(std::move(made)), wrong = shared(std::move(wrong))](Snapshot& s) {
        s.repaired = repaired;
        s.after = after;
        s.still_wrong = wrong;
        s.verified = nullptr;
      };
}

Result<Change> run_verify(const Snapshot& before, const Command&, Progress* progress) {
  const std::string& path = before.repaired ? before.repaired->output : before.said.checkpoint;
  SHW_TRY(VerifyReport made, verbs::verify(path, progress));
  return [verified = shared(std::move(made))](Snapshot& s) { s.verified = verified; };
}

// What lies there afterwards is another checkpoint: it is opened as the first one was.
Result<Change> run_undo(const Snapshot& before, const Command&, Progress* progress) {
  SHW_CHECK(verbs::undo(before.said.checkpoint));
  SHW_TRY(Change opened, run_open(before, open_again(before, before.said.checkpoint), progress));
  return opened;
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
  auto tensor = first_tensor(*before.checkpoint, before.report->findings[index]);
  return [index, tensor](Snapshot& s) {
    s.finding = index;
    if (!tensor) return;
    s.tensor = tensor;
    s.chunk.reset();
  };
}

}  // namespace shw
