#include "core/verbs/round_trip.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/compare/tensor_hashes.h"
#include "core/formats/adam_settings.h"
#include "core/formats/open.h"
#include "core/model/state_names.h"
#include "core/tensor/cast.h"
#include "core/transform/packed_tensor.h"
#include "core/transform/target_view.h"
#include "core/verbs/left_out_notes.h"
#include "core/verbs/map_convert.h"
#include "core/verbs/mapped_view.h"
#include "core/verbs/returned_states.h"
#include "core/verbs/values/read_elements.h"

namespace shw::verbs {
namespace {

struct Pair {
  TensorId own, back;
};

bool have_equal_dtype_and_shape(const Checkpoint& own, const Checkpoint& back, const Pair& pair) {
  return own.dtype(pair.own) == back.dtype(pair.back) &&
         std::ranges::equal(own.shape(pair.own), back.shape(pair.back));
}

void record_row_count_without_padding(const BoundRow& row,
                                      std::map<std::string, std::int64_t>& rows) {
  for (const BoundOp& op : row.ops) {
    if (op.kind != MapOp::Kind::kPad || op.dim != 0 || !row.lead.empty()) continue;
    for (const std::string& fqn : row.to) rows.emplace(fqn, op.size);
  }
}

// For tensors that the map cuts: number of rows without padding.
std::map<std::string, std::int64_t> rows_without_padding(const MappedSteps& steps) {
  std::map<std::string, std::int64_t> rows;
  for (const auto& maps : {steps.bound, steps.of_states}) {
    for (const BoundMap& bound : maps) {
      if (bound.way != MapDirection::kBack) continue;  // forward, padding is added
      for (const BoundRow& row : bound.rows) record_row_count_without_padding(row, rows);
    }
  }
  return rows;
}

// For each saved name with a wrapper's prefix ("module."): the name without it, by which the map
// finds the tensor.
std::map<std::string, std::string, std::less<>> unprefixed_names_by_saved_name(
    const MappedSteps& steps) {
  if (steps.bound.empty()) return {};
  const auto& stripped = steps.bound.front().stripped;
  return {stripped.begin(), stripped.end()};
}

// By source tensor: the name that the steps of a conversion without a map gave it.
using NewNames = std::map<TensorId, std::string>;

Result<NewNames> names_after_steps(const std::shared_ptr<const Checkpoint>& source,
                                   const std::vector<Step>& steps, Progress* progress) {
  SHW_TRY(const TargetState all, apply_steps(target_state_of(source), steps, progress));
  NewNames names;
  for (const TargetEntry& entry : all.tensors) {
    const auto from =
        entry.made == nullptr ? std::optional(entry.as_saved) : entry.made->unpacked().before;
    if (from) names.try_emplace(*from, entry.fqn);
  }
  return names;
}

// Some writers put the name of the state dict's item first.
std::optional<TensorId> find_with_item_prefix(const Checkpoint& back, const std::string& fqn) {
  const auto found = back.find(fqn);
  return found || !back.format().traits.names_have_items ? found : back.find("model." + fqn);
}

// The result with the dtypes of the source.
Result<std::shared_ptr<const Checkpoint>> with_dtypes_of_source(
    const Checkpoint& own, std::shared_ptr<const Checkpoint> back, const NewNames& names,
    const std::vector<Step>& steps, Progress* progress) {
  const bool are_cast = std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return std::holds_alternative<CastStep>(step);
  });
  if (!are_cast) return back;
  std::map<Dtype, Patterns> casts;
  for (const auto& [tensor, fqn] : names) {
    const auto found = find_with_item_prefix(*back, fqn);
    if (found && is_plain_float(own.dtype(tensor)) && back->dtype(*found) != own.dtype(tensor))
      casts[own.dtype(tensor)].emplace_back(back->fqn(*found));
  }
  std::vector<Step> undo;
  for (auto& [dtype, tensors] : casts) undo.emplace_back(CastStep{std::move(tensors), dtype});
  SHW_TRY(TargetState all, apply_steps(target_state_of(std::move(back)), undo, progress));
  return target_view(std::make_shared<const TargetState>(std::move(all)), progress);
}

std::optional<TensorId> find_by_either_name(
    const Checkpoint& back, std::string_view saved,
    const std::map<std::string, std::string, std::less<>>& as_read) {
  if (const auto found = back.find(saved)) return found;
  const auto read = as_read.find(saved);
  return read == as_read.end() ? std::nullopt : back.find(read->second);
}

// True if the result has the settings that the source's optimizer has.
bool has_equal_settings(const Checkpoint& own, const Checkpoint& made) {
  const auto values = [](const AdamSettings& one) {
    return std::tuple(one.step, one.lr, one.beta1, one.beta2, one.eps, one.weight_decay);
  };
  const auto before = adam_settings(own), after = adam_settings(made);
  return before && after && values(*before) == values(*after);
}

bool is_state_step(std::string_view fqn) {
  const auto path = parse_state_fqn(fqn);
  return path && path->kind == "step";
}

// Of the tensors that the way back does not have: those that the conversion left out, with the
// reasons, those that became settings, and the others, which are lost.
class MissingTensors {
 public:
  MissingTensors(const MappedSteps& steps, bool has_settings)
      : program_(steps.to), has_settings_(has_settings) {
    for (const OmittedState& state : steps.left_out_states) states_.emplace(state.fqn, state);
    left_out_.insert(steps.left_out.begin(), steps.left_out.end());
  }

  void add(const std::string& fqn, RoundTripResult& out) {
    const auto state = states_.find(fqn);
    if (has_settings_ && is_state_step(fqn)) {
      ++out.as_settings;
    } else if (state != states_.end()) {
      left_states_.push_back(state->second);
    } else if (left_out_.contains(fqn)) {
      left_tensors_.push_back(fqn);
    } else {
      out.without.push_back(fqn);
    }
  }

  void finish(RoundTripResult& out) const {
    out.left_out += left_states_.size() + left_tensors_.size();
    out.left_out_why = left_out_state_texts(left_states_, program_);
    if (!left_tensors_.empty())
      out.left_out_why.push_back(left_out_tensors_text(left_tensors_) + ": " + program_ +
                                 " does not store them, or an option names them");
  }

 private:
  std::string program_;
  bool has_settings_;
  std::map<std::string, OmittedState> states_;
  std::set<std::string> left_out_;
  std::vector<OmittedState> left_states_;
  std::vector<std::string> left_tensors_;
};

// Compares the first rows of both, some at a time.
Result<bool> first_rows_are_equal(const Checkpoint& own, const Checkpoint& back, const Pair& pair,
                                  std::int64_t rows) {
  constexpr std::int64_t kMaxBytes = 64 << 20;
  Box box = whole(copy_of(own.shape(pair.own)));
  box.sizes.front() = 1;
  const auto row =
      static_cast<std::int64_t>(size_of(own.dtype(pair.own))) * volume(box.sizes).value_or(0);
  const std::int64_t at_once =
      std::max<std::int64_t>(1, kMaxBytes / std::max<std::int64_t>(1, row));
  for (std::int64_t at = 0; at < rows; at += at_once) {
    box.offsets.front() = at;
    box.sizes.front() = std::min(at_once, rows - at);
    Bytes one(static_cast<std::size_t>(row * box.sizes.front())), other(one.size());
    SHW_CHECK(read_elements(own, pair.own, box, one));
    SHW_CHECK(read_elements(back, pair.back, box, other));
    if (one != other) return false;
  }
  return true;
}

}  // namespace

Result<RoundTripResult> check_round_trip(const Opened& source, const VerbOptions& said,
                                         const MapOptions& mapping, const std::vector<Step>& steps,
                                         const std::string& output, Progress* progress,
                                         Team* team) {
  const Checkpoint& own = *source.checkpoint;
  SHW_TRY(auto back, open_checkpoint(output, progress));
  RoundTripResult out;
  std::map<std::string, std::int64_t> unpadded;
  std::map<std::string, std::string, std::less<>> as_read;
  std::optional<NewNames> names;
  std::optional<StatesAfterRoundTrip> states;
  std::optional<MissingTensors> missing;
  if (needs_map(said, mapping)) {
    SHW_TRY(const MappedByOptions made,
            map_by_options(own, said.to, mapping, {said.leave_out, said.weights_only}));
    out.program = made.steps.from;
    unpadded = rows_without_padding(made.steps);
    as_read = unprefixed_names_by_saved_name(made.steps);
    missing.emplace(made.steps, !made.steps.states.empty() && has_equal_settings(own, *back));
    SHW_TRY(MappedView view,
            mapped_view(back, made.steps.from, mapping, progress, &own, StatePlaces::kAll));
    back = std::move(view.checkpoint);
    states.emplace(*back, made.steps.bound.front());
  } else {
    SHW_TRY(names, names_after_steps(source.checkpoint, steps, progress));
    SHW_TRY(back, with_dtypes_of_source(own, std::move(back), *names, steps, progress));
  }
  std::vector<TensorId> of_own, of_back;
  for (TensorId tensor : own.tensors()) {
    if (names && !names->contains(tensor)) {
      ++out.left_out;
      continue;
    }
    auto found = names ? find_with_item_prefix(*back, names->at(tensor))
                       : find_by_either_name(*back, own.fqn(tensor), as_read);
    if (!found && states) found = states->find(own.fqn(tensor));
    if (!found && missing) {
      missing->add(std::string(own.fqn(tensor)), out);
    } else if (!found) {
      out.without.emplace_back(own.fqn(tensor));
    } else if (!have_equal_dtype_and_shape(own, *back, {tensor, *found})) {
      out.differ.emplace_back(own.fqn(tensor));
    } else {
      of_own.push_back(tensor);
      of_back.push_back(*found);
    }
  }
  if (missing) missing->finish(out);
  SHW_TRY(const auto wanted, tensor_hashes(own, of_own, said.memory, progress, team));
  SHW_TRY(const auto made, tensor_hashes(*back, of_back, said.memory, progress, team));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto &one = wanted[i].fingerprint, &other = made[i].fingerprint;
    if (!one) return tl::unexpected<Error>(one.error());
    if (!other) return tl::unexpected<Error>(other.error());
    const auto padded = unpadded.find(wanted[i].fqn);
    if (*one == *other) {
      ++out.equal;
    } else if (padded == unpadded.end() || padded->second >= wanted[i].shape.front()) {
      out.differ.push_back(wanted[i].fqn);
    } else {
      SHW_TRY(const bool is_equal,
              first_rows_are_equal(own, *back, {of_own[i], of_back[i]}, padded->second));
      (is_equal ? out.padding : out.differ).push_back(wanted[i].fqn);
    }
  }
  return out;
}

}  // namespace shw::verbs
