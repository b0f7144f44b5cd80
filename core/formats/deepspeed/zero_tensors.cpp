#include "core/formats/deepspeed/zero_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/flat_ranges.h"
#include "core/formats/deepspeed/zero_experts.h"
#include "core/formats/deepspeed/zero_layout.h"

namespace shw {
namespace {

constexpr std::string_view kMasterKind = "fp32";
// Limit: 4,096 ranks with 1,000 parameters have 4 million parts.
constexpr std::uint64_t kMaxZeroParts = std::uint64_t{1} << 26;

// The flat tensor of a kind; null if the rank has none.
const ZeroTensor* flat_tensor_of(const ZeroOptimizer& optimizer, std::size_t group,
                                 std::string_view kind) {
  if (group >= optimizer.groups.size()) return nullptr;
  const ZeroGroup& of = optimizer.groups[group];
  if (kind == kMasterKind) return of.master ? &*of.master : nullptr;
  for (const auto& [name, tensor] : of.states) {
    if (name == kind) return &tensor;
  }
  return nullptr;
}

class ZeroTensors {
 public:
  ZeroTensors(CheckpointBuilder& builder, ZeroStorages& storages, const ZeroSave& world,
              const std::string& prefix, ZeroPickleFindings& notes)
      : builder_(builder), storages_(storages), zero_save_(world), prefix_(prefix), notes_(notes) {}

  void run() {
    if (zero_save_.model) add_module_tensors(*zero_save_.model);
    if (zero_save_.model) add_frozen(*zero_save_.model);
    if (!zero_save_.optimizers.empty()) add_partitions();
    if (zero_save_.model) add_tied_names(*zero_save_.model);
    if (zero_save_.model) add_rest(*zero_save_.model);
    report_short_partitions();
    report_moved_fragments();
  }

 private:
  // --- weights --------------------------------------------------------------------------------

  // Adds the module's tensors. In stage 3 its parameters are empty and only buffers have data.
  void add_module_tensors(const ZeroModel& model) {
    std::set<std::string> elsewhere;
    if (zero_save_.stage == 3) {
      for (const auto& group : model.groups)
        for (const ZeroShape& shape : group) elsewhere.insert(shape.name);
      for (const ZeroShape& shape : model.frozen) elsewhere.insert(shape.name);
      for (const auto& [name, whose] : model.shared) elsewhere.insert(name);
    }
    for (const NamedZeroTensor& one : model.module) {
      const bool is_placeholder = one.tensor.count() == 0 && elsewhere.contains(one.fqn);
      if (!is_placeholder) storages_.add_whole(prefix_ + one.fqn, one.tensor);
    }
  }

  void add_frozen(const ZeroModel& model) {
    for (const ZeroShape& frozen : model.frozen) {
      if (zero_save_.stage != 3) {
        auto whole = model.fragments.find(frozen.name);
        // The module also contains the tensor, unless DeepSpeed was configured to exclude frozen
        // ones.
        if (whole != model.fragments.end() && same(whole->second.sizes, frozen.shape))
          storages_.add_whole(prefix_ + frozen.name, whole->second);
        continue;
      }
      add_frozen_partitions(frozen);
    }
  }

  void add_frozen_partitions(const ZeroShape& frozen) {
    const ZeroTensor* first = nullptr;
    for (const auto& [rank, model] : zero_save_.rank_models) {
      auto cut = model.fragments.find(frozen.name);
      if (cut != model.fragments.end() && first == nullptr) first = &cut->second;
    }
    if (first == nullptr || !storages_.claim_name(prefix_ + frozen.name)) return;
    builder_.add_tensor(prefix_ + frozen.name, first->dtype, frozen.shape);
    const std::int64_t lengths[] = {first->count()};
    const ZeroLayout layout = lay_out_stage3({&frozen, 1}, lengths, 0, zero_save_.ranks);
    for (const ZeroPart& part :
         layout.parameters.empty() ? std::vector<ZeroPart>{} : layout.parameters.front().parts) {
      auto model = zero_save_.rank_models.find(part.rank);
      if (model == zero_save_.rank_models.end()) continue;
      auto cut = model->second.fragments.find(frozen.name);
      if (cut != model->second.fragments.end())
        add_part(frozen.name, frozen.shape, part, cut->second, model->second.path);
    }
  }

  // Tied weights: the groups contain only one of the names.
  void add_tied_names(const ZeroModel& model) {
    for (const auto& [name, whose] : model.shared) {
      auto parameter = weights_.find(whose);
      if (zero_save_.stage != 3 || parameter == weights_.end()) continue;
      ZeroParameter tied = parameter->second;
      tied.name = name;
      add_parts(tied, prefix_ + name, kMasterKind);
    }
  }

  void add_rest(const ZeroModel& model) {
    for (const NamedZeroTensor& one : model.more_tensors)
      storages_.add_whole(prefix_ + one.fqn, one.tensor);
    for (const NamedZeroValue& value : model.values)
      storages_.add_value({prefix_ + value.fqn, value.value});
    if (zero_save_.optimizers.empty()) return;
    for (const NamedZeroValue& value : zero_save_.optimizers.begin()->second.values)
      storages_.add_value({prefix_ + value.fqn, value.value});
  }

  // --- partitions -----------------------------------------------------------------------------

  const ZeroOptimizer& lead() const { return zero_save_.optimizers.begin()->second; }

  void add_partitions() {
    const std::size_t groups = lead().groups.size();
    for (std::size_t g = 0; g < groups; ++g) lengths_.push_back(longest_partition(g));
    const std::vector<std::int64_t>& lengths = lengths_;
    const auto* shapes = zero_save_.model ? &zero_save_.model->groups : nullptr;
    if (shapes == nullptr || shapes->empty()) {
      for (std::size_t g = 0; g < groups; ++g) add_flat_group(g);
      report_unnamed_groups(groups);
      return;
    }
    if (zero_save_.stage == 3 && shapes->size() != groups) {
      std::vector<ZeroShape> all;
      for (const auto& group : *shapes) all.insert(all.end(), group.begin(), group.end());
      add_parameters_of_layout(lay_out_stage3(all, lengths, 0, zero_save_.ranks), lengths);
      return;
    }
    std::size_t nameless = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      const bool is_named = g < shapes->size() && add_named_group(g, (*shapes)[g]);
      if (is_named) continue;
      add_flat_group(g);
      ++nameless;
    }
    report_unnamed_groups(nameless);
  }

  // False if no file says which parameters are in the group.
  bool add_named_group(std::size_t g, const std::vector<ZeroShape>& shapes) {
    const auto group = static_cast<std::uint32_t>(g);
    const std::int64_t length = lengths_[g], count = lead().groups[g].ranks;
    const std::span lengths(&length, 1);
    if (count == 0 || count == zero_save_.ranks) {
      add_parameters_of_layout(zero_save_.stage == 3
                                   ? lay_out_stage3(shapes, lengths, group, zero_save_.ranks)
                                   : lay_out_partitions(shapes, lead().groups[g].alignment, group,
                                                        {zero_save_.ranks}, length),
                               lengths);
      return true;
    }
    if (zero_save_.stage == 3) return false;
    const auto all =
        split_experts(shapes, zero_save_.ranks, count, zero_save_.model->is_data_before_expert);
    for (const ZeroExperts& experts : all)
      add_parameters_of_layout(lay_out_partitions(experts.shapes, lead().groups[g].alignment, group,
                                                  experts.ranks, length),
                               lengths);
    return !all.empty();
  }

  // Elements per rank, including the padding that DeepSpeed omits from the master.
  std::int64_t partition_of(std::size_t group) const {
    return group < lengths_.size() ? lengths_[group] : 0;
  }
  std::int64_t longest_partition(std::size_t group) const {
    std::int64_t most = 0;
    for (const auto& [rank, optimizer] : zero_save_.optimizers) {
      const ZeroTensor* master = flat_tensor_of(optimizer, group, kMasterKind);
      if (master == nullptr) continue;
      const std::int64_t padding = zero_save_.stage == 3 ? 0 : optimizer.groups[group].padding;
      most = std::max(most, master->count() + std::min(padding, std::int64_t{1} << 40));
    }
    return most;
  }

  void add_parameters_of_layout(const ZeroLayout& layout, std::span<const std::int64_t> lengths) {
    report_partition_size(layout, lengths);
    std::uint64_t parts = 0;
    for (const ZeroParameter& parameter : layout.parameters) parts += parameter.parts.size();
    if (parts > kMaxZeroParts) return report_too_many_pieces(parts);
    check_slices(layout);
    for (const ZeroParameter& parameter : layout.parameters) {
      const std::string state = prefix_ + "optimizer.state." + parameter.name + ".";
      if (zero_save_.stage == 3) weights_.emplace(parameter.name, parameter);
      add_parts(parameter, zero_save_.stage == 3 ? prefix_ + parameter.name : state + "fp32",
                kMasterKind);
      if (parameter.group >= lead().groups.size()) continue;
      const ZeroGroup& group = lead().groups[parameter.group];
      for (const auto& [kind, tensor] : group.states) add_state(parameter, state + kind, kind);
      for (const NamedZeroValue& value : group.values)
        storages_.add_value({state + value.fqn, value.value});
    }
  }

  void add_state(const ZeroParameter& parameter, const std::string& fqn, const std::string& kind) {
    const ZeroTensor& tensor = *flat_tensor_of(lead(), parameter.group, kind);
    if (is_partition(tensor, parameter.group)) return add_parts(parameter, fqn, kind);
    // A single number for the whole group, such as its step.
    if (tensor.count() != 1) return add_unpartitioned_state(parameter.group, kind);
    const bool is_new = storages_.add_whole(fqn, tensor, lead().rank);
    if (is_new && kind == "step" && groups_with_added_steps_.insert(parameter.group).second)
      add_steps_of_ranks(ChunkId{builder_.chunk_count() - 1}, parameter.group);
  }

  // The other ranks' steps of a group are copies of the lead's, so that --data compares them.
  void add_steps_of_ranks(ChunkId chunk, std::size_t group) {
    for (const auto& [rank, optimizer] : zero_save_.optimizers) {
      const ZeroTensor* step =
          rank == lead().rank ? nullptr : flat_tensor_of(optimizer, group, "step");
      if (step != nullptr && step->count() == 1)
        builder_.add_replica({chunk, storages_.storage(step->place, step->big_endian), rank});
    }
  }

  bool is_partition(const ZeroTensor& tensor, std::size_t group) const {
    const ZeroTensor* master = flat_tensor_of(lead(), group, kMasterKind);
    return tensor.is_flat && (tensor.count() == partition_of(group) ||
                              (master != nullptr && tensor.count() == master->count()));
  }

  // Adds a state that is not partitioned like the parameters, as one flat tensor per rank.
  void add_unpartitioned_state(std::size_t group, const std::string& kind) {
    for (const auto& [rank, optimizer] : zero_save_.optimizers) {
      if (const ZeroTensor* tensor = flat_tensor_of(optimizer, group, kind))
        storages_.add_whole(flat_group_entry_name(group, kind, rank), *tensor, rank);
    }
  }

  std::string flat_group_entry_name(std::size_t group, std::string_view kind,
                                    std::uint32_t rank) const {
    return fmt::format("{}optimizer.flat_groups.{}.{}.rank_{}", prefix_, group, kind, rank);
  }

  void add_flat_group(std::size_t group) {
    add_unpartitioned_state(group, std::string(kMasterKind));
    for (const auto& [kind, tensor] : lead().groups[group].states)
      add_unpartitioned_state(group, kind);
    for (const NamedZeroValue& value : lead().groups[group].values)
      storages_.add_value(
          {fmt::format("{}optimizer.flat_groups.{}.{}", prefix_, group, value.fqn), value.value});
  }

  void add_parts(const ZeroParameter& parameter, const std::string& fqn, std::string_view kind) {
    const ZeroTensor* like = nullptr;
    for (const auto& [rank, optimizer] : zero_save_.optimizers) {
      if (like == nullptr) like = flat_tensor_of(optimizer, parameter.group, kind);
    }
    if (like == nullptr || !storages_.claim_name(fqn)) return;
    builder_.add_tensor(fqn, like->dtype, parameter.shape);
    for (const ZeroPart& part : parameter.parts) {
      auto optimizer = zero_save_.optimizers.find(part.rank);
      if (optimizer == zero_save_.optimizers.end()) {
        add_lost(parameter.shape, part, kind, *like);
        continue;
      }
      const ZeroTensor* tensor = flat_tensor_of(optimizer->second, part.group, kind);
      if (tensor == nullptr || tensor->dtype != like->dtype || !tensor->is_flat)
        short_.push_back(fqn + " in " + optimizer->second.path);
      else
        add_part(fqn, parameter.shape, part, *tensor, optimizer->second.path);
    }
  }

  void add_part(const std::string& fqn, const Extents& shape, const ZeroPart& part,
                const ZeroTensor& tensor, const std::string& path) {
    const std::int64_t there = std::clamp<std::int64_t>(tensor.count() - part.at, 0, part.count);
    if (there < part.count) short_.push_back(fqn + " in " + path);
    add_boxes(shape, part, there, storages_.storage(tensor.place, tensor.big_endian),
              tensor.element + part.at);
  }

  void add_boxes(const Extents& shape, const ZeroPart& part, std::int64_t count, StorageId storage,
                 std::int64_t element) {
    for_each_flat_box(shape, part.first, part.first + count,
                      [&](const Box& box, std::int64_t first) {
                        const ChunkId chunk = builder_.add_chunk(box.offsets, box.sizes, {});
                        builder_.set_view(chunk, storage, element + (first - part.first));
                        builder_.set_writer(chunk, part.rank);
                      });
  }

  // Adds chunks for a missing file, with the sizes that the other ranks' files have. Their offsets
  // in the file are invented and never read.
  void add_lost(const Extents& shape, const ZeroPart& part, std::string_view kind,
                const ZeroTensor& like) {
    auto path = zero_save_.lost.find(part.rank);
    if (path == zero_save_.lost.end()) return;
    auto [known, is_new] =
        lost_.try_emplace({part.rank, part.group, std::string(kind)}, StorageId{});
    if (is_new) {
      std::int64_t& end = lost_end_[part.rank];
      const std::int64_t bytes =
          partition_of(part.group) * static_cast<std::int64_t>(size_of(like.dtype));
      known->second = builder_.add_storage({builder_.file(path->second), end, bytes});
      end += bytes;
    }
    add_boxes(shape, part, part.count, known->second, part.at);
  }

  // --- what does not fit ------------------------------------------------------------------------

  void note(std::string subject, std::string cause) {
    notes_.findings.push_back(bad_record_finding(std::move(subject), std::move(cause)));
  }

  // Same tolerance as DeepSpeed's zero_to_fp32: in stages 1 and 2 up to the alignment of a group.
  void report_partition_size(const ZeroLayout& layout, std::span<const std::int64_t> lengths) {
    std::int64_t there = 0;
    for (std::int64_t length : lengths) there += length;
    std::int64_t needed = layout.needed, slack = 0;
    if (zero_save_.stage != 3) {
      there *= layout.ranks.count;
      slack = 2 * layout.ranks.count - 1;
      // Padding after the last parameter.
      const auto& groups = lead().groups;
      const std::size_t group = layout.parameters.empty() ? 0 : layout.parameters.back().group;
      if (group < groups.size() && !groups[group].alignment.empty())
        slack += std::clamp<std::int64_t>(groups[group].alignment.back(), 0, there);
    }
    if (needed <= there && there - needed <= slack) return;
    const std::string& path = zero_save_.model->path;
    note(path, fmt::format("Partitions and parameters do not match: the partitions of {} hold {} "
                           "elements, but by the shapes in {} the parameters need {}. Files of two "
                           "saves are mixed, or a file was changed.",
                           zero_save_.stage == 3 ? "a rank" : "all ranks",
                           human_count(static_cast<std::uint64_t>(there)), path,
                           human_count(static_cast<std::uint64_t>(needed))));
  }

  void report_too_many_pieces(std::uint64_t parts) {
    Finding finding = bad_record_finding(
        zero_save_.model->path,
        fmt::format("The partitions split the parameters into {} parts, more than is supported.",
                    human_count(parts)));
    finding.rule = "not-looked-at";
    finding.severity = Severity::kInfo;
    notes_.findings.push_back(std::move(finding));
  }

  void report_short_partitions() {
    if (short_.empty()) return;
    Finding finding = bad_record_finding(
        short_.front(), fmt::format("{} partitions are shorter than their parameters, or differ in "
                                    "dtype from other ranks: {}.",
                                    short_.size(), short_list_text(short_)));
    finding.subjects.assign(
        short_.begin(),
        short_.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(short_.size(), 32)));
    finding.evidence = {{"count", static_cast<std::int64_t>(short_.size())}};
    notes_.findings.push_back(std::move(finding));
  }

  void report_unnamed_groups(std::size_t groups) {
    if (groups == 0) return;
    Finding finding = bad_record_finding(
        lead().path, fmt::format("{} of the optimizer could not be assigned to parameters: {}. It "
                                 "is not checked whether they are complete.",
                                 plural(groups, "flat group"),
                                 zero_save_.model && !zero_save_.model->groups.empty()
                                     ? "its parameters are experts, which differ on every rank"
                                     : "no file says which parameters are in them"));
    finding.rule = "not-looked-at";
    finding.severity = Severity::kInfo;
    notes_.findings.push_back(std::move(finding));
  }

  static bool shares(const PartitionRanks& ranks, std::int64_t rank) {
    const std::int64_t after = rank - ranks.first;
    return after >= 0 && after % ranks.step == 0 && after / ranks.step < ranks.count;
  }

  // Compares with each rank's own record of the parameters in its partition.
  void check_slices(const ZeroLayout& layout) {
    if (zero_save_.stage == 3) return;
    std::map<std::pair<std::uint32_t, std::string_view>, const ZeroPart*> parts;
    for (const ZeroParameter& parameter : layout.parameters) {
      for (const ZeroPart& part : parameter.parts)
        parts[{part.rank, parameter.name_in_files}] = &part;
    }
    for (const auto& [rank, optimizer] : zero_save_.optimizers) {
      if (layout.parameters.empty()) continue;
      const std::size_t group = layout.parameters.front().group;
      if (group >= optimizer.groups.size() || !shares(layout.ranks, rank)) continue;
      for (const ZeroSlice& slice : optimizer.groups[group].slices) {
        auto part = parts.find({rank, slice.name});
        const bool fits = part != parts.end() && part->second->at == slice.first &&
                          part->second->count == slice.count;
        if (!fits && slice.count != 0)
          other_slices_.push_back(slice.name + " in " + optimizer.path);
      }
    }
  }

  void report_moved_fragments() {
    if (other_slices_.empty()) return;
    note(other_slices_.front(),
         fmt::format("{} of parameters are not at the positions that the shapes give: {}. The "
                     "parameter order changed between the files, so it is not certain which "
                     "elements belong to which parameter.",
                     plural(other_slices_.size(), "fragment"), short_list_text(other_slices_)));
  }

  CheckpointBuilder& builder_;
  ZeroStorages& storages_;
  const ZeroSave& zero_save_;
  const std::string& prefix_;
  ZeroPickleFindings& notes_;
  std::vector<std::int64_t> lengths_;              // of partitions, by group
  std::set<std::size_t> groups_with_added_steps_;  // groups whose ranks' steps were added
  std::map<std::string, ZeroParameter> weights_;   // stage 3 only
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, StorageId> lost_;
  std::map<std::uint32_t, std::int64_t> lost_end_;
  std::vector<std::string> short_, other_slices_;
};

}  // namespace

void add_zero_tensors(CheckpointBuilder& builder, ZeroStorages& storages, const ZeroSave& world,
                      const std::string& prefix, ZeroPickleFindings& notes) {
  ZeroTensors(builder, storages, world, prefix, notes).run();
}

}  // namespace shw
