// What a checkpoint holds after its plan, as the writer of a format takes it.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/formats/format_writer.h"
#include "core/repair/plan/plan.h"

namespace shw {

// Every tensor in the order of the checkpoint, planned ones with their new chunks as tiles, all
// else as it was. kUnsupported where something that is not repaired cannot be said again.
Result<Outputs> outputs_after(const Checkpoint& checkpoint, const Plan& plan,
                              const std::string& checkpoint_id);

// What an index says beside its entries, where its files stay: records that belong to no entry, and
// names that were never saved.
void add_left_records(const Checkpoint& checkpoint, Outputs& outputs);

// Provenance::reordered after what findings ask for.
std::vector<std::string> reordered_by(const Checkpoint& checkpoint, const Plan& plan);

// Indices in plan.tensors, by tensor.
std::unordered_map<std::uint32_t, std::size_t> planned_by_id(const Plan& plan);

// What the metadata says beside tensors, but for the record of what is filled, which is written
// anew.
std::vector<std::pair<std::string, std::string>> other_attributes(const Checkpoint& checkpoint);

}  // namespace shw
