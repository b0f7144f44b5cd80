#include "core/session/command.h"

#include "core/io/remote/remote_path.h"
#include "core/verbs/place_mark.h"

namespace shw {

Command without_passwords(Command command) {
  if (auto* open = std::get_if<OpenCommand>(&command)) {
    open->path = without_secrets(open->path);
    open->against = without_secrets(open->against);
  }
  if (auto* compare = std::get_if<CompareCommand>(&command))
    compare->path = without_secrets(compare->path);
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
