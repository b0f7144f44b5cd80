// Comparison with another checkpoint: execution and text.

#include "core/base/parse_text.h"
#include "core/formats/open.h"
#include "core/session/command_run.h"
#include "core/session/command_text.h"
#include "core/verbs/plan_file.h"
#include "core/verbs/run/newest_step.h"
#include "core/verbs/verbs_over_ssh.h"

namespace shw {

namespace {

std::shared_ptr<const verbs::PairedNames> shared_names(std::optional<verbs::PairedNames> names) {
  return names ? std::make_shared<const verbs::PairedNames>(std::move(*names)) : nullptr;
}

}  // namespace

Result<Change> run_compare(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  const auto& c = as<CompareCommand>(command);
  auto compared = std::make_shared<verbs::ComparedCheckpoints>();
  compared->a = before.checkpoint;
  SHW_TRY(verbs::NewestStep other, verbs::newest_step(verbs::expanded_path(c.path), progress));
  SHW_TRY(compared->b, open_to_compare(other.path, progress));
  verbs::DiffOptions options;
  options.compare.data = c.data;
  if (c.data && before.runs_over_ssh && verbs::is_on_machine_of(before.options, other.path)) {
    SHW_TRY(compared->difference,
            verbs::diff_over_ssh(before.options.checkpoint, other.path, progress));
  } else {
    SHW_TRY(*compared, verbs::diff_opened(compared->a, compared->b, options, progress));
  }
  SHW_TRY(auto paired, verbs::pair_names(*compared->a, *compared->b));
  if (paired) verbs::count_row_differences(compared->difference, *paired);
  return [compared = std::shared_ptr<const verbs::ComparedCheckpoints>(compared),
          paired = shared_names(std::move(paired)),
          path = other.asked == other.path ? c.path : other.path](Snapshot& s) {
    if (s.checkpoint != compared->a) return;
    s.compared = compared;
    s.compared_with = path;
    s.paired = paired;
    s.difference.reset();
  };
}

// Reads both checkpoints whole.
Result<Change> run_learn(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  const auto& path = as<LearnCommand>(command).path;
  SHW_TRY(verbs::NewestStep newest, verbs::newest_step(verbs::expanded_path(path), progress));
  SHW_TRY(std::shared_ptr<const Checkpoint> other, open_to_compare(newest.path, progress));
  SHW_TRY(const LearnedMap learned, learn_map(before.checkpoint, other, progress));
  SHW_TRY(verbs::PairedNames paired, verbs::pair_learned(*before.checkpoint, *other, learned));
  return [of = before.checkpoint, paired = shared_names(std::move(paired)),
          path = newest.asked == newest.path ? path : newest.path](Snapshot& s) {
    if (s.checkpoint != of) return;
    s.paired = paired;
    s.compared_with = path;
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
std::optional<Command> parse_learn(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return LearnCommand{std::string(rest)};
}
std::string print_learn(const Command& command) {
  return as<LearnCommand>(command).path;
}
std::string print_compare(const Command& command) {
  const auto& c = as<CompareCommand>(command);
  return (c.data ? "data " : "") + c.path;
}

std::optional<Command> parse_difference(std::string_view rest) {
  const auto index = parse_number<std::size_t>(rest);
  return index ? std::optional<Command>(DifferenceCommand{*index}) : std::nullopt;
}
std::string print_difference(const Command& command) {
  return std::to_string(as<DifferenceCommand>(command).index);
}

}  // namespace shw
