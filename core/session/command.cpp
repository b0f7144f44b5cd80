#include "core/session/command.h"

#include "core/io/remote/remote_path.h"
#include "core/verbs/place_mark.h"

namespace shw {
namespace {

// The only path of a command; null if it has none.
std::string* path_of(Command& command) {
  if (auto* compare = std::get_if<CompareCommand>(&command)) return &compare->path;
  if (auto* learn = std::get_if<LearnCommand>(&command)) return &learn->path;
  if (auto* run = std::get_if<RunCommand>(&command)) return &run->folder;
  if (auto* browse = std::get_if<BrowseCommand>(&command)) return &browse->folder;
  if (auto* repair = std::get_if<RepairCommand>(&command)) return &repair->options.out;
  if (auto* target = std::get_if<TargetCommand>(&command)) return &target->path;
  if (auto* resume = std::get_if<ResumeCommand>(&command)) return &resume->folder;
  if (auto* back = std::get_if<RollBackCommand>(&command)) return &back->folder;
  if (auto* save = std::get_if<SavePlanCommand>(&command)) return &save->path;
  if (auto* load = std::get_if<LoadPlanCommand>(&command)) return &load->path;
  if (auto* report = std::get_if<ReportCommand>(&command)) return &report->path;
  if (auto* values = std::get_if<SaveValuesCommand>(&command)) return &values->path;
  if (auto* view = std::get_if<SaveViewCommand>(&command)) return &view->path;
  if (auto* hash = std::get_if<HashCommand>(&command)) return &hash->path;
  if (auto* demo = std::get_if<DemoCommand>(&command)) return &demo->folder;
  return nullptr;
}

}  // namespace

Command without_passwords(Command command) {
  if (auto* open = std::get_if<OpenCommand>(&command)) {
    open->path = without_secrets(open->path);
    open->spec = without_secrets(open->spec);
    open->against = without_secrets(open->against);
  }
  if (std::string* path = path_of(command)) *path = without_secrets(*path);
  if (auto* pasted = std::get_if<ExplainErrorCommand>(&command))
    pasted->text = text_without_secrets(pasted->text);
  constexpr std::string_view kFrom = "from:";
  if (auto* plan = std::get_if<PlanCommand>(&command); plan && plan->fill.starts_with(kFrom))
    plan->fill = std::string(kFrom) + without_secrets(plan->fill.substr(kFrom.size()));
  return command;
}

OpenCommand reopen_command(const Snapshot& snapshot, const std::string& path) {
  OpenCommand open{path, snapshot.options.spec, snapshot.options.against, snapshot.options.mesh};
  if (snapshot.checkpoint != nullptr && snapshot.tensor)
    open.tensor = snapshot.checkpoint->fqn(*snapshot.tensor);
  if (!open.tensor.empty() && snapshot.chunk &&
      snapshot.checkpoint->tensor_of(*snapshot.chunk) == *snapshot.tensor)
    open.tile = tile_mark(*snapshot.checkpoint, *snapshot.chunk);
  const auto& report = snapshot.report;
  if (report != nullptr && snapshot.finding && *snapshot.finding < report->findings.size())
    open.finding = finding_mark(report->findings[*snapshot.finding]);
  return open;
}

}  // namespace shw
