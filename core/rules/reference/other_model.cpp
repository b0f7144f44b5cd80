#include "core/rules/reference/other_model.h"
#include "core/base/cancellable_range.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/model/state_names.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Agreement of the checkpoint and the reference. Names agree if they are equal, equal without
// wrappers, or end the same way on tensors of the same shape.
struct ModelAgreement {
  std::size_t here = 0, there = 0;    // number of names on each side
  std::size_t names = 0, shapes = 0;  // number that agree
  // Among the agreeing names: number of tensors with at least two dims that are not optimizer
  // states (a rank's shard may be cut along two), and of those whose sizes differ along at least
  // two.
  std::size_t matrices = 0, resized = 0;
  std::string resized_example;
  bool may_be_shards = true;  // every resized tensor is one chunk and nowhere longer
  std::vector<std::string> only_here, only_there;
};

void compare_shapes(ModelAgreement& agreement, const Checkpoint& c, TensorId tensor,
                    ExtentsView there) {
  const std::string_view fqn = c.fqn(tensor);
  const ExtentsView here = c.shape(tensor);
  agreement.shapes += same(here, there) ? 1 : 0;
  if (here.size() != there.size() || here.size() < 2 || parse_state_fqn(fqn)) return;
  ++agreement.matrices;
  std::size_t differing = 0;
  bool longer = false;
  for (std::size_t d = 0; d < here.size(); ++d) {
    differing += here[d] != there[d] ? 1 : 0;
    longer = longer || here[d] > there[d];
  }
  if (differing < 2 || volume(here) == volume(there)) return;
  ++agreement.resized;
  agreement.may_be_shards = agreement.may_be_shards && !longer && c.chunks(tensor).size() == 1;
  if (agreement.resized_example.empty())
    agreement.resized_example =
        fmt::format("{} is {}, expected {}", fqn, to_text(here), to_text(there));
}

std::size_t smaller_name_count(const ModelAgreement& agreement) {
  return std::min(agreement.here, agreement.there);
}

// If few names and no shapes agree, the names are ones that every model has.
bool differs_by_shapes(const ModelAgreement& agreement) {
  return agreement.shapes == 0 && agreement.names * 10 <= std::max(agreement.here, agreement.there);
}

// True for the same architecture in another size, or one rank's shards on a mesh that cuts both
// dimensions; shapes do not distinguish these. Other mistakes of a save change one dimension (a
// missing axis, a half) or keep the number of elements (moved axes).
bool is_another_size(const ModelAgreement& agreement) {
  return agreement.names * 2 > smaller_name_count(agreement) && !differs_by_shapes(agreement) &&
         agreement.matrices >= 2 && agreement.resized * 2 > agreement.matrices;
}

// Counted over the smaller side, because a spec of part of a model, or a truncated checkpoint,
// agrees in all of its few names. Models of one family share up to a quarter by chance
// (embed_tokens, norm).
bool is_another(const ModelAgreement& agreement) {
  std::size_t fewer = smaller_name_count(agreement);
  if (agreement.here == 0 || agreement.there < 2) return false;
  bool by_names = agreement.names * 4 <= fewer && (agreement.names == 0 || fewer >= 8);
  return by_names || differs_by_shapes(agreement) || is_another_size(agreement);
}

std::string_view last_parts(std::string_view fqn) {
  std::size_t dot = fqn.rfind('.');
  std::size_t before =
      dot == std::string_view::npos || dot == 0 ? std::string_view::npos : fqn.rfind('.', dot - 1);
  return before == std::string_view::npos ? fqn : fqn.substr(before + 1);
}

class ModelNames {
 public:
  ModelNames(const Checkpoint& c, const Progress* progress) : c_(c) {
    for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
      bare_.emplace(unwrapped_name(c.fqn(tensor)), tensor);
      tails_.emplace(last_parts(c.fqn(tensor)), tensor);
    }
    auto objects = c.objects();
    for (const NonTensorEntry& object : cancellable_range(objects, progress))
      objects_.insert(object.fqn);
  }
  std::optional<TensorId> find(std::string_view fqn, ExtentsView shape) const {
    if (auto tensor = c_.find(fqn)) return tensor;
    if (auto found = bare_.find(unwrapped_name(fqn)); found != bare_.end()) return found->second;
    auto [at, end] = tails_.equal_range(last_parts(fqn));
    for (; at != end; ++at) {
      if (same(c_.shape(at->second), shape)) return at->second;
    }
    return std::nullopt;
  }
  bool is_object(std::string_view fqn) const { return objects_.contains(fqn); }

 private:
  const Checkpoint& c_;
  std::unordered_map<std::string, TensorId> bare_;
  std::unordered_multimap<std::string_view, TensorId> tails_;
  std::unordered_set<std::string_view> objects_;
};

void add_example(std::vector<std::string>& examples, std::string_view fqn) {
  if (examples.size() < 3) examples.emplace_back(fqn);
}

Finding other_model_finding(const ModelAgreement& agreement, const std::string& source,
                            const char* what) {
  Finding finding{.rule = "other-model"};
  if (!source.empty()) finding.subjects = {source};
  std::size_t fewer = smaller_name_count(agreement);
  std::size_t all = std::max(agreement.here, agreement.there);
  bool by_names = agreement.names * 4 <= fewer;
  if (!by_names && is_another_size(agreement)) {
    finding.cause = fmt::format(
        "{} is for the same kind of model in a different size{}: {} of {} matrices differ from it "
        "in "
        "two dimensions ({}). Nothing was compared with it.",
        what, agreement.may_be_shards ? ", or each matrix was saved as the shard of one rank" : "",
        agreement.resized, agreement.matrices, agreement.resized_example);
  } else {
    finding.cause = std::string(what) + " is for another model, or another part of it: " +
                    human_count(agreement.names) + " of " +
                    plural(by_names ? agreement.there : all, "name") +
                    (agreement.names == 1 ? " agrees" : " agree") +
                    (agreement.names != 0 && agreement.shapes == 0 ? " and no shape does" : "") +
                    ". Nothing was compared with it.";
  }
  finding.evidence = {{"names_in_the_checkpoint", count_of(agreement.here)},
                      {"names_expected", count_of(agreement.there)},
                      {"names_that_agree", count_of(agreement.names)},
                      {"shapes_that_agree", count_of(agreement.shapes)},
                      {"only_in_the_checkpoint", agreement.only_here},
                      {"only_expected", agreement.only_there},
                      {"where", std::string("request")}};
  return finding;
}

}  // namespace

std::optional<Finding> other_model_in_spec(const Checkpoint& checkpoint, const Spec& spec,
                                           const Progress* progress) {
  ModelAgreement agreement;
  agreement.here = checkpoint.tensor_count();
  agreement.there = spec.entries.size();
  ModelNames names(checkpoint, progress);
  std::vector<bool> met(checkpoint.tensor_count(), false);
  for (const auto& [fqn, entry] : cancellable_range(spec.entries, progress)) {
    auto tensor = names.find(fqn, entry.shape);
    bool there = tensor.has_value() || names.is_object(fqn);
    agreement.names += there ? 1 : 0;
    if (tensor) {
      met[index_of(*tensor)] = true;
      compare_shapes(agreement, checkpoint, *tensor, entry.shape);
    }
    if (!there) add_example(agreement.only_there, fqn);
  }
  if (!is_another(agreement)) return std::nullopt;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    if (!met[index_of(tensor)]) add_example(agreement.only_here, checkpoint.fqn(tensor));
  }
  return other_model_finding(agreement, spec.source, "The spec");
}

std::optional<Finding> other_model_in_reference(
    const Checkpoint& checkpoint, const Checkpoint& reference,
    std::span<const std::optional<TensorId>> counterparts, const OneSideQuantised& sides,
    const Progress* progress) {
  // The side of the floats has one tensor a weight, the other one its companions too.
  const std::size_t quantised = std::min(sides.here.size(), sides.there.size());
  ModelAgreement agreement;
  agreement.here = checkpoint.tensor_count() - sides.here.size() + quantised;
  agreement.there = reference.tensor_count() - sides.there.size() + quantised;
  agreement.names = quantised;
  std::vector<bool> met(reference.tensor_count(), false);
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    if (sides.here.contains(tensor)) continue;
    auto other = counterparts[index_of(tensor)];
    if (!other) {
      add_example(agreement.only_here, checkpoint.fqn(tensor));
      continue;
    }
    ++agreement.names;
    met[index_of(*other)] = true;
    compare_shapes(agreement, checkpoint, tensor, reference.shape(*other));
  }
  if (!is_another(agreement)) return std::nullopt;
  for (TensorId tensor : cancellable_range(reference.tensors(), progress)) {
    if (!met[index_of(tensor)] && !sides.there.contains(tensor))
      add_example(agreement.only_there, reference.fqn(tensor));
  }
  bool named = reference.directory() != nullptr;
  return other_model_finding(agreement, named ? reference.directory()->name() : "",
                             "The reference");
}

const Rule kOtherModel = {
    .id = "other-model",
    .depth = Depth::kMetadata,
    .title = "The spec or reference belongs to another model",
    .teaches =
        "A spec or a reference says what this model should hold. This one describes another model, "
        "or another part of this one (only its adapters or its optimizer): almost no name agrees, "
        "or most matrices differ in size along two dimensions, as in a larger model or when each "
        "was saved as one rank's shard. So it was not used for comparison, and the other findings "
        "were made without it. Prefixes that wrappers add (model., module.) do not count as a "
        "difference.",
    .lesson = {.drawing = R"(
  expected                        saved
  model.layers.0.mlp.up.weight    transformer.h.0.mlp.c_fc.weight
  model.layers.0.mlp.down.weight  transformer.h.0.mlp.c_proj.weight
  ...                             ...
  3 of 1,142 names agree
)",
               .remedy = "The checkpoint needs no change. Give a spec or reference of the same "
                         "model, or check without one."},
    .outcome = RunOutcome::kLoadFails,
};

}  // namespace shw
