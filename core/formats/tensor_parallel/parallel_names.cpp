#include "core/formats/tensor_parallel/parallel_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/top_file.h"

namespace shw {
namespace {

constexpr std::string_view kParallelSuffix = ".safetensors";
constexpr std::uint32_t kMaxParallelRanks = 4096;

// Consumes `word` and the number after it.
bool consume_word_and_number(std::string_view& text, std::string_view word, std::uint32_t& number) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  const auto taken = consume_number(text);
  number = taken.value_or(0);
  return taken.has_value();
}

}  // namespace

std::optional<EngineFileName> parse_engine_file(std::string_view file) {
  if (!file.ends_with(kParallelSuffix)) return std::nullopt;
  file.remove_suffix(kParallelSuffix.size());
  EngineFileName name;
  std::string_view rest = file;
  bool is_one = consume_word_and_number(rest, "model-rank-", name.rank) &&
                consume_word_and_number(rest, "-part-", name.part) && rest.empty();
  if (!is_one) {
    rest = file;
    name = {ParallelEngine::kTensorRt};
    is_one = consume_word_and_number(rest, "rank", name.rank) && rest.empty();
  }
  if (!is_one) {
    rest = file;
    name = {ParallelEngine::kDeepSeek};
    is_one = consume_word_and_number(rest, "model", name.rank) &&
             consume_word_and_number(rest, "-mp", name.ranks) && rest.empty() &&
             name.rank < name.ranks;
  }
  const bool is_bounded = name.rank < kMaxParallelRanks && name.part < kMaxParallelRanks &&
                          name.ranks <= kMaxParallelRanks;
  // "rank007" is not how an engine spells rank 7.
  return is_one && is_bounded && engine_file_name(name) == std::string(file).append(kParallelSuffix)
             ? std::optional(name)
             : std::nullopt;
}

std::string engine_file_name(const EngineFileName& name) {
  switch (name.engine) {
    case ParallelEngine::kVllm:
      return fmt::format("model-rank-{}-part-{}.safetensors", name.rank, name.part);
    case ParallelEngine::kTensorRt:
      return fmt::format("rank{}.safetensors", name.rank);
    case ParallelEngine::kDeepSeek:
      return fmt::format("model{}-mp{}.safetensors", name.rank, name.ranks);
  }
  return {};
}

std::optional<ParallelFiles> parallel_files(std::span<const Entry> entries) {
  std::optional<ParallelFiles> found;
  for (const Entry& entry : entries) {
    const auto name = is_top_file(entry) ? parse_engine_file(entry.path) : std::nullopt;
    if (!name) continue;
    if (!found) found = ParallelFiles{.engine = name->engine, .ranks = name->ranks, .of_rank = {}};
    const bool is_alike =
        found->engine == name->engine && (name->ranks == 0 || found->ranks == name->ranks);
    if (!is_alike) return std::nullopt;
    found->have_names_with_ranks = name->ranks != 0;
    if (name->ranks == 0) found->ranks = std::max(found->ranks, name->rank + 1);
    found->of_rank[name->rank][name->part] = entry.path;
  }
  return found && found->ranks > 1 ? found : std::nullopt;
}

}  // namespace shw
