// Comparison with another checkpoint: execution and text.
#include <charconv>

#include "core/compare/compare.h"
#include "core/formats/open.h"
#include "core/session/command_run.h"
#include "core/session/command_text.h"
#include "core/verbs/newest_step.h"
#include "core/verbs/plan_file.h"

namespace shw {

Result<Change> run_compare(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  const auto& c = as<CompareCommand>(command);
  auto compared = std::make_shared<verbs::ComparedCheckpoints>();
  compared->a = before.checkpoint;
  SHW_TRY(verbs::NewestStep other, verbs::newest_step(verbs::expanded_path(c.path), progress));
  SHW_TRY(compared->b, open_to_compare(other.path, progress));
  CompareOptions options;
  options.data = c.data;
  SHW_TRY(compared->difference, compare_checkpoints(*compared->a, *compared->b, options, progress));
  return [compared = std::shared_ptr<const verbs::ComparedCheckpoints>(compared),
          path = other.asked == other.path ? c.path : other.path](Snapshot& s) {
    if (s.checkpoint != compared->a) return;
    s.compared = compared;
    s.compared_with = path;
    s.difference.reset();
  };
}

// Also selects the tensor in the open checkpoint, if it exists.
Result<Change> select_difference(const Snapshot& before, const Command& command, Progress*) {
  std::size_t index = as<DifferenceCommand>(command).index;
  if (before.compared == nullptr || index >= before.compared->difference.tensors.size())
    return Change([](Snapshot&) {});
  auto tensor = before.checkpoint->find(before.compared->difference.tensors[index].fqn);
  return [index, tensor](Snapshot& s) {
    s.difference = index;
    if (!tensor) return;
    s.tensor = tensor;
    s.chunk.reset();
  };
}

std::optional<Command> parse_compare(std::string_view rest) {
  CompareCommand compare;
  if (rest.starts_with("data ")) {
    compare.data = true;
    rest.remove_prefix(5);
  }
  if (rest.empty()) return std::nullopt;
  compare.path = rest;
  return compare;
}
std::string print_compare(const Command& command) {
  const auto& c = as<CompareCommand>(command);
  return (c.data ? "data " : "") + c.path;
}

std::optional<Command> parse_difference(std::string_view rest) {
  std::size_t index = 0;
  auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
  if (code != std::errc{} || end != rest.data() + rest.size()) return std::nullopt;
  return DifferenceCommand{index};
}
std::string print_difference(const Command& command) {
  return std::to_string(as<DifferenceCommand>(command).index);
}

}  // namespace shw
