// Pipeline stages that number their layers from 0 and saved the local number as the global
// one. The reference's bytes identify the layers.
//
// The smallest family of tensors ("model.layers.N.mlp.weight" for all N) is read first; all
// tensors are read only if it contains a displaced layer, or if layers of the reference are
// missing. A new number is accepted if every tensor of the layer in the reference equals
// that of one layer there. Tensors that the reference lacks (optimizer states next to an
// export) follow, unless layers were lost: then only those written by the ranks of proved
// ones.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/layer_numbers.h"
#include "core/facts/reference/match.h"
#include "core/facts/reference/tensor_contents.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/values/many_values.h"
#include "core/facts/values/value_reader.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::size_t kProbes = 3;     // families read if the first are inconclusive
constexpr std::size_t kFewValues = 2;  // zeros, ones, identities and masks

using LayersByNumber = std::map<std::int64_t, TensorId>;     // by number
using LayersByTail = std::map<std::string, LayersByNumber>;  // by the name part after the number
using Contents = TensorContents;

// Tensors with layer numbers, without states, by the name part before the
// number.
std::map<std::string, LayersByTail> families_of(const Checkpoint& c, bool bare,
                                                const Progress* progress) {
  std::map<std::string, LayersByTail> out;
  for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
    std::string_view fqn = c.fqn(tensor);
    if (fqn.starts_with("optim")) continue;
    if (auto name = layer_name_of(fqn))
      out[bare ? unwrapped_name(name->before) : name->before][name->after][name->number] = tensor;
  }
  return out;
}

std::vector<TensorId> tensors_of(const LayersByNumber& layers) {
  std::vector<TensorId> out;
  for (const auto& [number, tensor] : layers) out.push_back(tensor);
  return out;
}

// The layers under one prefix, here and in the reference.
struct LayerStack {
  const Facts& facts;
  std::string before;  // in this checkpoint's spelling
  const LayersByTail& here;
  const LayersByTail& there;
  Contents& contents;
  Contents& reference;
};

LayersByNumber counted(const LayersByTail& families, const std::string& after) {
  auto found = families.find(after);
  return found == families.end() ? LayersByNumber{} : found->second;
}

// Removes displaced tensors with few distinct values: the zeros of one layer may equal those of
// another.
void drop_constants(const Facts& facts, const LayersByNumber& here,
                    std::map<std::int64_t, std::int64_t>& real) {
  std::vector<std::int64_t> numbers;
  std::vector<TensorId> moved;
  for (const auto& [number, other] : real) {
    TensorId tensor = here.at(number);
    if (number == other || !has_values(facts.checkpoint.dtype(tensor))) continue;
    numbers.push_back(number);
    moved.push_back(tensor);
  }
  const std::vector<bool> tells = have_more_values_than(facts, moved, kFewValues);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!tells[i]) real.erase(numbers[i]);
  }
}

// Layer here to layer of the reference with equal bytes; empty if ambiguous.
Result<std::map<std::int64_t, std::int64_t>> same_bytes(LayerStack& stack,
                                                        const std::string& after) {
  PlacesByContent<std::string, std::int64_t> by_hash;
  const LayersByNumber here = counted(stack.here, after), there = counted(stack.there, after);
  SHW_CHECK(stack.reference.learn(tensors_of(there)));
  SHW_CHECK(stack.contents.learn(tensors_of(here)));
  for (const auto& [number, tensor] : there) {
    const std::string& hash = stack.reference.of(tensor);
    if (!hash.empty()) by_hash.add(hash, number);
  }
  std::map<std::int64_t, std::int64_t> out;
  for (const auto& [number, tensor] : here) {
    if (const auto found = by_hash.only(stack.contents.of(tensor))) out[number] = *found;
  }
  drop_constants(stack.facts, here, out);
  return out;
}

bool moves(const std::map<std::int64_t, std::int64_t>& real) {
  return std::any_of(real.begin(), real.end(),
                     [](const auto& one) { return one.first != one.second; });
}

// Matrix families of both sides, smallest first.
std::vector<std::string> families_to_compare(const Checkpoint& c, const LayerStack& stack) {
  std::vector<std::pair<std::int64_t, std::string>> by_size;
  for (const auto& [after, layers] : stack.here) {
    ExtentsView shape = c.shape(layers.begin()->second);
    if (shape.size() >= 2 && stack.there.contains(after))
      by_size.emplace_back(volume(shape).value_or(0), after);
  }
  std::sort(by_size.begin(), by_size.end());
  std::vector<std::string> out;
  for (auto& [size, after] : by_size) out.push_back(std::move(after));
  return out;
}

std::size_t count_layers(const LayersByTail& families) {
  std::set<std::int64_t> numbers;
  for (const auto& [after, layers] : families) {
    for (const auto& [number, tensor] : layers) numbers.insert(number);
  }
  return numbers.size();
}

// True if every layer equals the reference's layer of the same number.
bool are_in_place(const Facts& facts, const LayersByNumber& here, const LayersByNumber& there) {
  return std::all_of(here.begin(), here.end(), [&](const auto& one) {
    auto same_number = there.find(one.first);
    return same_number != there.end() && facts.equal_to_reference.contains(one.second) &&
           facts.counterparts[index_of(one.second)] == same_number->second;
  });
}

// If layers of the reference are missing, stages may have collided, which any family may show.
Result<bool> is_renumbered(const Facts& facts, const std::vector<std::string>& families,
                           LayerStack& stack) {
  bool all = facts.depth == Depth::kData || count_layers(stack.here) < count_layers(stack.there);
  std::size_t said_nothing = 0;
  for (const std::string& after : families) {
    // Layers known to be in place are not read again.
    if (all && are_in_place(facts, stack.here.at(after), stack.there.at(after))) continue;
    SHW_TRY(auto real, same_bytes(stack, after));
    if (moves(real)) return true;
    if (all) continue;
    if (!real.empty() || ++said_nothing == kProbes) return false;
  }
  return false;
}

struct RenumberingVerdict {
  LayerNumbers numbers;
  std::string why_not;               // why new numbers are uncertain; empty: certain
  std::vector<std::string> wrong;    // proved tensors under another layer's number
  std::vector<std::string> renames;  // "a is b"
  std::vector<std::string> missing;  // layers that only the reference has
  std::set<std::int64_t> found;      // layers of the reference found here
  std::set<TensorId> proven;
  std::set<std::string> listed;  // as a set of `wrong`

  void add_renumbered_tensor(const LayerStack& stack, std::string fqn, std::int64_t real,
                             const std::string& after) {
    if (!listed.insert(fqn).second) return;
    renames.push_back(fmt::format("{} is {}{}{}", fqn, stack.before, real, after));
    wrong.push_back(std::move(fqn));
  }
};

// The correct number of each layer by all matrices; two candidates mean a collision.
Status find_numbers(const Checkpoint& c, const std::vector<std::string>& families,
                    LayerStack& stack, RenumberingVerdict& verdict) {
  std::map<std::int64_t, std::set<std::int64_t>> said;
  for (const std::string& after : families) {
    SHW_TRY(const auto found, same_bytes(stack, after));
    for (auto [number, real] : found) {
      said[number].insert(real);
      verdict.found.insert(real);
      if (number != real)
        verdict.add_renumbered_tensor(stack, std::string(c.fqn(stack.here.at(after).at(number))),
                                      real, after);
    }
  }
  std::set<std::int64_t> taken;
  for (const auto& [number, real] : said) {
    if (real.size() > 1 && verdict.why_not.empty()) {
      verdict.why_not = fmt::format(
          "layer {} holds tensors of layers {} and {}: several stages wrote the same names, and "
          "one copy of each was kept",
          number, *real.begin(), *real.rbegin());
    }
    verdict.numbers.real[number] = *real.begin();
    if (!taken.insert(*real.begin()).second && verdict.why_not.empty())
      verdict.why_not = fmt::format("layer {} is here twice", *real.begin());
  }
  return {};
}

// Reads the pairs that prove() compares: each tensor with that of its identified layer and that of
// its own number.
Status read_compared_pairs(LayerStack& stack, const RenumberingVerdict& verdict) {
  std::vector<TensorId> here, there;
  for (const auto& [after, layers] : stack.here) {
    const LayersByNumber others = counted(stack.there, after);
    for (const auto& [number, tensor] : layers) {
      auto real = verdict.numbers.real.find(number);
      auto other = real == verdict.numbers.real.end() ? others.end() : others.find(real->second);
      if (other == others.end()) continue;
      here.push_back(tensor);
      there.push_back(other->second);
      if (auto own = others.find(number); own != others.end()) there.push_back(own->second);
    }
  }
  SHW_CHECK(stack.contents.learn(here));
  return stack.reference.learn(there);
}

// Every tensor of the reference must be equal.
Status prove(const Checkpoint& c, LayerStack& stack, RenumberingVerdict& verdict) {
  SHW_CHECK(read_compared_pairs(stack, verdict));
  auto doubt = [&](std::string why) {
    if (verdict.why_not.empty()) verdict.why_not = std::move(why);
  };
  for (const auto& [after, layers] : stack.here) {
    LayersByNumber there = counted(stack.there, after);
    for (const auto& [number, tensor] : layers) {
      std::string fqn(c.fqn(tensor));
      auto real = verdict.numbers.real.find(number);
      if (real == verdict.numbers.real.end()) {
        doubt(
            fmt::format("no tensor of layer {} has the bytes of a layer of the reference", number));
        continue;
      }
      auto found = there.find(real->second);
      if (found == there.end()) continue;
      const std::string& hash = stack.contents.of(tensor);
      if (hash.empty() || hash != stack.reference.of(found->second)) {
        doubt(fmt::format("{} does not hold what layer {} of the reference holds", fqn,
                          real->second));
        continue;
      }
      verdict.proven.insert(tensor);
      auto own = there.find(number);  // equal norms (all ones) also match under their own number
      const bool is_right = own != there.end() && hash == stack.reference.of(own->second);
      if (!is_right) verdict.add_renumbered_tensor(stack, fqn, real->second, after);
    }
  }
  return {};
}

void find_missing_layers(const LayerStack& stack, RenumberingVerdict& verdict) {
  std::set<std::int64_t> there;
  for (const auto& [after, layers] : stack.there) {
    for (const auto& [number, tensor] : layers) there.insert(number);
  }
  for (std::int64_t number : there) {
    if (!verdict.found.contains(number))
      verdict.missing.push_back(fmt::format("{}{}", stack.before, number));
  }
}

// Renames tensors that the reference lacks as their layer is renamed. If stages collided, an
// optimizer state may come from another stage than its parameter: only states written by the ranks
// of the parameter are renamed.
struct UnmatchedTensorRenamer {
  const Checkpoint& checkpoint;
  const RenumberingVerdict& verdict;
  std::set<std::uint32_t> ranks = {};  // ranks that wrote proved tensors

  void collect_ranks_of_proven() {
    for (TensorId tensor : verdict.proven) {
      for (ChunkId chunk : checkpoint.chunks(tensor)) {
        if (auto writer = checkpoint.writer(chunk)) ranks.insert(*writer);
      }
    }
  }
  bool are_written_by_proved_ranks(TensorId tensor) const {
    if (verdict.missing.empty()) return true;
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      auto writer = checkpoint.writer(chunk);
      if (!writer || !ranks.contains(*writer)) return false;
    }
    return true;
  }
  bool are_written_by_proved_ranks(const NonTensorEntry& object) const {
    if (verdict.missing.empty()) return true;
    if (!object.item || object.item->file == FileId::kNone) return false;
    auto rank = checkpoint.file(object.item->file).rank;
    return rank && ranks.contains(*rank);
  }
};

// Reads unproved tensors whose new name exists in the reference.
Status read_renamed_tensors(const Facts& facts, LayerStack& stack,
                            const RenumberingVerdict& verdict) {
  std::vector<TensorId> here, there;
  for (TensorId tensor : each_tensor(facts)) {
    if (verdict.proven.contains(tensor)) continue;
    auto renamed = with_correct_layer_number(facts.checkpoint.fqn(tensor), verdict.numbers);
    auto other = renamed ? facts.reference->find(renamed->name) : std::nullopt;
    if (!other) continue;
    here.push_back(tensor);
    there.push_back(*other);
  }
  SHW_CHECK(stack.contents.learn(here));
  return stack.reference.learn(there);
}

Result<std::vector<Diagnosis>> renames_of(const Facts& facts, LayerStack& stack,
                                          RenumberingVerdict& verdict) {
  const Checkpoint& c = facts.checkpoint;
  SHW_CHECK(read_renamed_tensors(facts, stack, verdict));
  UnmatchedTensorRenamer followers{c, verdict};
  followers.collect_ranks_of_proven();
  std::vector<Diagnosis> out;
  auto doubt = [&](std::string_view name, const char* why) {
    if (verdict.why_not.empty()) verdict.why_not = std::string(name) + why;
  };
  for (TensorId tensor : each_tensor(facts)) {
    auto renamed = with_correct_layer_number(c.fqn(tensor), verdict.numbers);
    if (!renamed) continue;
    if (!renamed->known)
      doubt(c.fqn(tensor), " belongs to a layer that no other tensor here belongs to");
    if (!verdict.proven.contains(tensor)) {
      auto other = facts.reference->find(renamed->name);
      bool differs = other && stack.contents.of(tensor) != stack.reference.of(*other);
      if (differs)
        doubt(c.fqn(tensor), " does not hold what the reference holds under its new name");
      else if (!other && !followers.are_written_by_proved_ranks(tensor))
        doubt(c.fqn(tensor), " may belong to a lost layer: different ranks wrote it");
    }
    if (renamed->name != c.fqn(tensor)) out.emplace_back(Renamed{tensor, renamed->name, {}});
  }
  if (out.empty()) return out;
  auto& first = std::get<Renamed>(out.front());
  for (std::size_t i = 0; i < c.objects().size(); ++i) {
    const NonTensorEntry& object = c.objects()[i];
    auto renamed = with_correct_layer_number(object.fqn, verdict.numbers);
    if (!renamed || renamed->name == object.fqn) continue;
    if (!followers.are_written_by_proved_ranks(object))
      doubt(object.fqn, " may belong to a lost layer: different ranks wrote it");
    first.objects.emplace_back(i, renamed->name);
  }
  return out;
}

std::string kind_of_shift(const std::map<std::int64_t, std::int64_t>& real) {
  std::set<std::int64_t> shifts;
  for (auto [here, there] : real) shifts.insert(there - here);
  if (shifts.size() > 1) return "layers have changed places";
  std::int64_t shift = *shifts.begin();
  return fmt::format("every number is {} too {}", std::abs(shift), shift > 0 ? "small" : "large");
}

Status report_renumbered(const Facts& facts, LayerStack& stack, RenumberingVerdict verdict,
                         std::vector<Finding>& findings) {
  Finding finding{.rule = "layers-renumbered"};
  finding.link = "Megatron-LM #7452";
  SHW_TRY(std::vector<Diagnosis> renames, renames_of(facts, stack, verdict));
  finding.cause = plural(verdict.wrong.size(), "tensor") +
                  " of a different layer than the name says (" + verdict.renames.front() +
                  " in the reference, byte for byte; " + kind_of_shift(verdict.numbers.real) +
                  "): a pipeline stage saved its local layer numbers as global ones.";
  finding.evidence = {{"count", count_of(verdict.wrong.size())},
                      {"renames", capped(verdict.renames)},
                      {"layers_that_are_not_here", capped(verdict.missing)}};
  finding.subjects = verdict.wrong;
  if (!verdict.why_not.empty()) {
    finding.cause += " Which names are right is undecided: " + verdict.why_not + ".";
    finding.evidence.emplace_back("decided", false);
    findings.push_back(std::move(finding));
    return {};
  }
  std::string text =
      "Give " + plural(renames.size(), "tensor") +
      " the names of their true layers, including their optimizer states: no byte moves.";
  if (!verdict.missing.empty())
    text += " " + short_list_text(verdict.missing) + " of other stages " +
            (verdict.missing.size() == 1 ? "was" : "were") +
            " saved under the same names and lost; the rename does not bring them back.";
  finding.remedy = Remedy{"rename", verdict.missing.empty(), std::move(text)};
  finding.diagnoses = std::move(renames);
  findings.push_back(std::move(finding));
  return {};
}

// True for one of several prefixes such as "model_pp0.layers." and "model_pp1.layers.": stages that
// have their own names may number layers as they like.
bool is_one_of_several_stages(const std::map<std::string, LayersByTail>& here,
                              const std::string& before) {
  std::string bare = unwrapped_name(before);
  return std::count_if(here.begin(), here.end(),
                       [&](const auto& other) { return unwrapped_name(other.first) == bare; }) > 1;
}

// The prefix in the reference: equal without wrappers, or taken from matched names.
std::string prefix_in_reference(const Facts& facts, const std::string& before,
                                const LayersByTail& families) {
  for (const auto& [after, layers] : families) {
    for (const auto& [number, tensor] : layers) {
      auto other = facts.counterparts[index_of(tensor)];
      auto name = other ? layer_name_of(facts.reference->fqn(*other)) : std::nullopt;
      if (name) return unwrapped_name(name->before);
    }
  }
  return unwrapped_name(before);
}

Status find_renumbered_layers(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.reference == nullptr) return {};
  const Checkpoint& c = facts.checkpoint;
  auto here = families_of(c, false, facts.progress),
       there = families_of(*facts.reference, true, facts.progress);
  Contents contents(facts, c), reference(facts, *facts.reference);
  for (const auto& [before, families] : each_of(here, facts)) {
    auto found = there.find(prefix_in_reference(facts, before, families));
    if (found == there.end() || is_one_of_several_stages(here, before)) continue;
    // This is a deeper model made from the reference's layers.
    if (count_layers(families) > count_layers(found->second)) continue;
    LayerStack stack{facts, before, families, found->second, contents, reference};
    std::vector<std::string> matrices = families_to_compare(c, stack);
    SHW_TRY(bool is_worth_it, is_renumbered(facts, matrices, stack));
    if (!is_worth_it) continue;
    RenumberingVerdict verdict;
    verdict.numbers.before = before;
    SHW_CHECK(find_numbers(c, matrices, stack, verdict));
    find_missing_layers(stack, verdict);
    SHW_CHECK(prove(c, stack, verdict));
    if (!verdict.wrong.empty())
      SHW_CHECK(report_renumbered(facts, stack, std::move(verdict), findings));
  }
  return {};
}

}  // namespace

const Rule kLayersRenumbered = {
    .id = "layers-renumbered",
    .depth = Depth::kHeaders,
    .title = "Layers have the local numbers of their pipeline stage",
    .teaches =
        "Under pipeline parallelism every stage has some of the layers and counts them from 0. A "
        "saver that writes the local number as the global one gives the first stage's names to all "
        "stages; where several stages wrote one key, deduplication keeps one of them. With "
        "--against another checkpoint the bytes show which layer each one really is, and the "
        "repair restores the names: only metadata changes. If layers were mixed, nothing is "
        "renamed.",
    .lesson = {.drawing = R"(
  pipeline of 2 stages, 2 layers each

  layer           stage 0: 0  1        stage 1: 2  3
  saved as        layers.0  layers.1   layers.0  layers.1
  on disk         one layers.0 and one layers.1, of whichever stage was kept
)",
               .remedy = "`shardwright repair --against REFERENCE` gives every layer the name that "
                         "its bytes prove, with its optimizer states; no byte moves. Take dropped "
                         "layers from another step.",
               .link = "https://github.com/NVIDIA/Megatron-LM/issues/7452"},
    .run_shared = find_renumbered_layers,
};

}  // namespace shw
