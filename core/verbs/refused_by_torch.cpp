#include "core/verbs/refused_by_torch.h"

#include <fmt/core.h>

#include <optional>

#include "core/base/words.h"
#include "core/formats/carried_values.h"
#include "core/formats/common/carried_pickle.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/pickle/weights_only.h"
#include "core/report/text_words.h"

namespace shw::verbs {
namespace {

// The first name in a value that torch's own unpickler does not import.
std::optional<std::string> refused_name(std::string_view opcodes) {
  auto placed = renumber_memo_entries(opcodes, 0, 0);
  if (!placed) return std::nullopt;
  const std::string pickle = "\x80\x02" + placed->opcodes + ".";
  auto tree = decode_pickle(std::as_bytes(std::span(pickle)), "value");
  if (!tree) return std::nullopt;
  for (const PickleGlobal& global : tree->globals()) {
    if (!is_weights_only_safe(global.module, global.name)) return global.module + "." + global.name;
  }
  return std::nullopt;
}

}  // namespace

TorchRefusals find_torch_refusals(const Checkpoint& checkpoint,
                                  const std::vector<std::size_t>& objects, Progress* progress) {
  TorchRefusals refused;
  CarriedValues values(checkpoint, progress);
  for (std::size_t object : objects) {
    const auto value = values.of(object);
    const auto name = value ? refused_name(value->opcodes) : std::nullopt;
    if (!name) continue;
    if (refused.entries.empty()) refused.first_name = *name;
    refused.entries.push_back(checkpoint.objects()[object].fqn);
  }
  return refused;
}

std::string in_words(const TorchRefusals& refused) {
  if (refused.entries.empty()) return {};
  constexpr std::size_t kMost = 8;
  std::string options;
  for (std::size_t i = 0; i < refused.entries.size() && i < kMost; ++i)
    options += " --leave-out " + shell_word(refused.entries[i]);
  return fmt::format(
      "torch.load will refuse this file by default (weights_only=True): {} {} {}. To leave {} out:"
      "{}",
      short_list_text(refused.entries), refused.entries.size() == 1 ? "holds" : "hold",
      refused.entries.size() == 1 ? refused.first_name
                                  : fmt::format("classes such as {}", refused.first_name),
      refused.entries.size() == 1 ? "it" : "them",
      refused.entries.size() > kMost ? " --weights-only" : options);
}

}  // namespace shw::verbs
