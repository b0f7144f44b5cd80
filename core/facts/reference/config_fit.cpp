#include "core/facts/reference/config_fit.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/until_cancelled.h"
#include "core/facts/reference/config_laws.h"
#include "core/formats/common/top_file.h"

namespace shw {
namespace {

// As transformers names what it reads: "model.safetensors", "model-00001-of-00002.safetensors",
// "pytorch_model.bin", with a variant ("model.fp16.safetensors") or without. vLLM's sharded states
// ("model-rank-0-part-0.safetensors") hold a rank's share of each tensor.
bool is_of_pretrained(const FileRow& file) {
  const std::string_view path = file.path;
  return is_at_top(path) && (path.starts_with("model") || path.starts_with("pytorch_model")) &&
         path.find("rank") == std::string_view::npos &&
         (path.ends_with(".safetensors") || path.ends_with(".bin"));
}

bool holds_pretrained(const Checkpoint& c) {
  if (c.directory() == nullptr || !c.format().traits.one_piece) return false;
  std::size_t used = 0;
  for (const FileRow& file : c.files()) {
    if (!file.referenced) continue;
    if (!is_of_pretrained(file)) return false;
    ++used;
  }
  return used != 0;
}

// Whether all that the folder should hold was read: what is not there may be in what was not.
bool is_read_whole(const Checkpoint& c) {
  std::vector<std::string_view> used;
  for (const FileRow& file : c.files()) {
    if (!file.referenced) continue;
    if (file.kind != EntryKind::kFile) return false;
    used.push_back(file.path);
  }
  for (const Finding& finding : c.opening_findings()) {
    if (finding.severity == Severity::kError) return false;
  }
  const auto unlisted = c.format().traits.unlisted_files;
  return unlisted == nullptr || unlisted(used).missing.empty();
}

bool is_plain_float(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16 ||
         dtype == Dtype::kFloat64;
}

// --- sizes

struct LawOfName {
  const ModelPart* part = nullptr;
  std::array<std::string_view, 2> extents;
};

// By what names are with stars for their numbers, roots and all.
using LawsByName = std::unordered_map<std::string, LawOfName>;

LawsByName laws_by_name(const std::vector<ModelPart>& parts) {
  LawsByName laws;
  for (const ModelPart& part : parts) {
    for (std::string_view root : part.roots) {
      for (const SizeLaw& law : part.laws->sizes)
        laws.emplace(std::string(root) + std::string(law.name), LawOfName{&part, law.extents});
    }
    // As the embedding, whose law is the first of each model that has a head.
    for (const std::string& head : part.heads)
      laws.emplace(head, LawOfName{&part, part.laws->sizes.front().extents});
  }
  return laws;
}

class SizeChecks {
 public:
  explicit SizeChecks(const Checkpoint& checkpoint) : c_(checkpoint) {}
  void look_at(TensorId tensor, const LawOfName& law) {
    const ExtentsView shape = c_.shape(tensor);
    if (!is_plain_float(c_.dtype(tensor))) return;
    // Of one more axis are vectors as rows, and what a trainer has flattened: not for us to tell.
    const std::size_t said = law.extents[1].empty() ? 1 : 2;
    const bool is_vector = law.extents[1].empty() && law.extents[0].empty();
    if (is_vector || shape.size() < said) return;
    for (std::size_t axis = 0; axis < said; ++axis) look_at(tensor, axis, law);
  }
  std::vector<SizeContradiction> take() && {
    std::vector<SizeContradiction> found;
    for (auto& [key, check] : checks_) {
      if (!check.tensors.empty()) found.push_back(std::move(check));
    }
    // A key by itself stands before products that it is a part of, and explains them.
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.keys.size() < b.keys.size(); });
    std::set<std::string> wrong;
    std::erase_if(found, [&](const SizeContradiction& one) {
      const bool is_explained =
          one.keys.size() > 1 && std::any_of(one.keys.begin(), one.keys.end(),
                                             [&](const auto& key) { return wrong.contains(key); });
      if (one.keys.size() == 1 && one.agreeing == 0) wrong.insert(one.keys.front());
      return is_explained;
    });
    return found;
  }

 private:
  void look_at(TensorId tensor, std::size_t axis, const LawOfName& law) {
    const std::string_view expression = law.extents[axis];
    auto said = said_size(*law.part, expression);
    if (!said) return;
    const std::int64_t saved = c_.shape(tensor)[axis];
    auto& check = checks_[std::pair(law.part, expression)];
    const bool is_first = check.tensors.empty();
    if (saved == said->value) {
      ++check.agreeing;
      return;
    }
    const bool is_padding = expression == "vocab_size" && saved > said->value;
    check.only_more_rows = is_padding && (is_first || check.only_more_rows);
    check.words = std::move(said->words);
    check.keys = std::move(said->keys);
    check.said = said->value;
    check.tensors.push_back({tensor, axis});
  }

  const Checkpoint& c_;
  std::map<std::pair<const ModelPart*, std::string_view>, SizeContradiction> checks_;
};

// --- how many there are

using Numbers = std::set<std::int64_t>;

// "12.mlp.up_proj.weight": the number, and what stands after it.
std::optional<std::int64_t> take_member(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  if (dot == 0 || dot == std::string_view::npos || dot > 9) return std::nullopt;
  std::int64_t number = 0;
  for (char c : rest.substr(0, dot)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  rest.remove_prefix(dot + 1);
  return number;
}

// Layers that predict further tokens follow the model's own, and are read by other loaders alone.
bool is_of_prediction(std::string_view rest) {
  return rest.starts_with("eh_proj") || rest.starts_with("enorm") || rest.starts_with("hnorm") ||
         rest.starts_with("shared_head");
}

struct StackSeen {
  const StackLaw* law = nullptr;
  const ModelPart* part = nullptr;
  Numbers layers, predicting;
  std::map<std::string, std::pair<std::int64_t, Numbers>> inner;  // by row: of which layer
};
using StacksByName = std::map<std::string, StackSeen, std::less<>>;  // "model.layers."

StacksByName stacks_of(const std::vector<ModelPart>& parts) {
  StacksByName stacks;
  for (const ModelPart& part : parts) {
    for (std::string_view root : part.roots) {
      for (const StackLaw& law : part.laws->stacks)
        stacks.emplace(std::string(root) + std::string(law.name),
                       StackSeen{&law, &part, {}, {}, {}});
    }
  }
  return stacks;
}

void see(StacksByName& stacks, std::string_view fqn) {
  for (auto& [name, stack] : stacks) {
    if (!fqn.starts_with(name)) continue;
    std::string_view rest = fqn.substr(name.size());
    const auto layer = take_member(rest);
    if (!layer) continue;
    stack.layers.insert(*layer);
    if (is_of_prediction(rest)) stack.predicting.insert(*layer);
    for (std::string_view inner : split_at(stack.law->inner, '|')) {
      if (inner.empty() || !rest.starts_with(inner)) continue;
      std::string_view after = rest.substr(inner.size());
      const std::string row(fqn.substr(0, fqn.size() - after.size()));
      if (const auto number = take_member(after)) {
        auto& [of, numbers] = stack.inner[row];
        of = *layer;
        numbers.insert(*number);
      }
    }
  }
}

std::vector<NumberRange> missing_of(const Numbers& there, std::int64_t count) {
  std::vector<NumberRange> missing;
  std::int64_t next = 0;
  for (std::int64_t number : there) {
    if (number >= count) break;
    if (number > next) missing.push_back({next, number - 1});
    next = number + 1;
  }
  if (next < count) missing.push_back({next, count - 1});
  return missing;
}

std::vector<NumberRange> beyond(const Numbers& there, std::int64_t count) {
  std::vector<NumberRange> extra;
  for (auto at = there.lower_bound(count); at != there.end(); ++at) {
    if (!extra.empty() && extra.back().last + 1 == *at)
      extra.back().last = *at;
    else
      extra.push_back({*at, *at});
  }
  return extra;
}

std::optional<CountContradiction> count_against(const std::string& row, const Numbers& there,
                                                const Numbers& allowed, const SaidSize& said) {
  Numbers counted;
  std::set_difference(there.begin(), there.end(), allowed.begin(), allowed.end(),
                      std::inserter(counted, counted.end()));
  CountContradiction found;
  found.row = row;
  found.words = said.words;
  found.key = said.keys.front();
  found.said = said.value;
  found.there = static_cast<std::int64_t>(there.size());
  found.missing = missing_of(there, said.value);
  found.extra = beyond(counted, said.value);
  found.rows = {row};
  if (found.missing.empty() && found.extra.empty()) return std::nullopt;
  return found;
}

bool is_alike(const CountContradiction& a, const CountContradiction& b) {
  auto alike = [](const auto& one, const auto& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const NumberRange& x, const NumberRange& y) {
                        return x.first == y.first && x.last == y.last;
                      });
  };
  return a.key == b.key && alike(a.missing, b.missing) && alike(a.extra, b.extra);
}

// The experts of each layer that the model has; layers that lost the same are told together.
void add_inner(const StackSeen& stack, const Numbers& of_model,
               std::vector<CountContradiction>& out) {
  const auto said = said_size(*stack.part, stack.law->inner_count);
  if (!said || said->value == 0) return;
  const std::size_t begin = out.size();
  for (const auto& [row, seen] : stack.inner) {
    if (!of_model.contains(seen.first)) continue;
    auto found = count_against(row, seen.second, {}, *said);
    if (!found) continue;
    auto same = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
                             [&](const auto& other) { return is_alike(other, *found); });
    if (same != out.end())
      same->rows.push_back(row);
    else
      out.push_back(std::move(*found));
  }
}

void add_counts(const StackSeen& stack, const std::string& row,
                std::vector<CountContradiction>& out) {
  const auto said = said_size(*stack.part, stack.law->count);
  if (stack.layers.empty() || !said) return;
  // What predicts further tokens: by its name, or by the key that counts it.
  Numbers allowed = stack.predicting;
  const auto more = said_size(*stack.part, stack.law->more);
  for (auto at = stack.layers.lower_bound(said->value); more && at != stack.layers.end(); ++at) {
    if (*at - said->value < more->value) allowed.insert(*at);
  }
  if (auto found = count_against(row, stack.layers, allowed, *said))
    out.push_back(std::move(*found));
  Numbers of_model;
  std::copy_if(stack.layers.begin(), stack.layers.end(), std::inserter(of_model, of_model.end()),
               [&](std::int64_t layer) { return layer < said->value; });
  add_inner(stack, of_model, out);
}

// Where one part's layers stand under two roots nobody knows which of them are the model's.
bool has_two_roots(const StacksByName& stacks, const StackSeen& stack) {
  std::size_t seen = 0;
  for (const auto& [name, other] : stacks)
    seen += other.part == stack.part && other.law == stack.law && !other.layers.empty() ? 1 : 0;
  return seen > 1;
}

// --- the head

// Of a model whose head is said to be a matrix of its own. Without a root the inner model alone was
// saved, as models that embed texts are.
std::optional<std::string> missing_head_of(const Checkpoint& c, const ModelConfig& config,
                                           const ModelPart& part) {
  const ConfigPart& whole = config.parts.front();
  auto ties = whole.flags.find("tie_word_embeddings");
  if (part.config != &whole || part.heads.empty() || ties == whole.flags.end() || ties->second)
    return std::nullopt;
  if (config.architectures.size() != 1) return std::nullopt;
  const std::string& made = config.architectures.front();
  if (!made.ends_with("ForCausalLM") && !made.ends_with("LMHeadModel")) return std::nullopt;
  const std::string embedding =
      std::string(part.roots.front()) + std::string(part.laws->sizes.front().name);
  if (!c.find(embedding) || c.find(part.heads.front())) return std::nullopt;
  return part.heads.front();
}

// --- dtypes

// What it says, and the one that all weights have instead.
std::optional<std::pair<Dtype, Dtype>> other_dtype(const Checkpoint& c, const std::string& said) {
  const std::string bare = said.starts_with("torch.") ? said.substr(6) : said;
  Dtype expected = Dtype::kUnknown;
  for (Dtype one : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16})
    if (bare == name(one)) expected = one;
  if (expected == Dtype::kUnknown) return std::nullopt;
  std::optional<Dtype> all;
  for (TensorId tensor : c.tensors()) {
    const Dtype dtype = c.dtype(tensor);
    if (!is_plain_float(dtype)) continue;
    if (dtype == expected || (all && *all != dtype)) return std::nullopt;
    all = dtype;
  }
  if (!all) return std::nullopt;
  return std::pair(expected, *all);
}

void compare_config(const Checkpoint& c, const ModelConfig& config, Progress* progress,
                    ConfigFit& fit) {
  const std::vector<ModelPart> parts = known_parts(config);
  const LawsByName laws = laws_by_name(parts);
  StacksByName stacks = stacks_of(parts);
  SizeChecks sizes(c);
  std::size_t known = 0;
  for (TensorId tensor : until_cancelled(c.tensors(), progress)) {
    const std::string_view fqn = c.fqn(tensor);
    see(stacks, fqn);
    auto law = laws.find(with_stars(fqn));
    if (law == laws.end()) continue;
    ++known;
    if (!config.packs_weights) sizes.look_at(tensor, law->second);
  }
  if (known == 0) {
    fit.unknown_model = config.parts.front().model_type;
    return;
  }
  fit.sizes = std::move(sizes).take();
  if (!config.packs_weights) fit.dtypes = other_dtype(c, config.dtype);
  if (!is_read_whole(c)) return;
  for (const auto& [name, stack] : stacks) {
    if (!has_two_roots(stacks, stack)) add_counts(stack, name, fit.counts);
  }
  for (const ModelPart& part : parts) {
    if (auto head = missing_head_of(c, config, part)) fit.missing_head = std::move(head);
  }
}

}  // namespace

std::optional<ConfigFit> fit_config(const Checkpoint& checkpoint, Progress* progress) {
  if (!holds_pretrained(checkpoint)) return std::nullopt;
  auto config = read_model_config(*checkpoint.directory());
  if (config && !*config) return std::nullopt;
  ConfigFit fit;
  if (!config) {
    fit.unusable = std::move(config).error();
    return fit;
  }
  fit.has_own_code = (*config)->has_own_code;
  compare_config(checkpoint, **config, progress, fit);
  return fit;
}

}  // namespace shw
