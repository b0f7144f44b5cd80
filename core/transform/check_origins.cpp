#include "core/transform/check_origins.h"

#include "core/program/origin.h"

namespace shw {
namespace {

// Byte offset of an element of the part, computed from the part alone.
std::int64_t expected_byte_offset(const Part& part, const Extents& at, const PartStorage& storage) {
  std::int64_t byte = storage.lies.first;
  Extents coordinate = part.first;
  for (std::size_t d = 0; d < part.order.size(); ++d) {
    if (part.order[d] >= 0)
      coordinate[static_cast<std::size_t>(part.order[d])] += at[d] - part.box.offsets[d];
  }
  for (std::size_t e = 0; e < coordinate.size(); ++e)
    byte += coordinate[e] * storage.lies.strides[e];
  return storage.lies.is_stored ? byte + static_cast<std::int64_t>(storage.lies.offset) : byte;
}

bool originates_from(const Program& program, const Origin& origin, const Part& part,
                     const Extents& at, const PartStorage* storage) {
  if (storage == nullptr) {
    const auto& bits = std::get<FromConstant>(part.from).bits;
    return origin.source == nullptr && origin.job->constant[0] == bits[0] &&
           origin.job->constant[1] == bits[1];
  }
  if (origin.source == nullptr) return false;
  bool same_storage = origin.source->input == storage->input &&
                      program.names[origin.source->file] == storage->file &&
                      (origin.source->form == SourceForm::kStored) == storage->lies.is_stored &&
                      (storage->lies.is_stored || origin.source->chunk == storage->chunk);
  return same_storage && origin.job->from == part.saved &&
         (origin.job->op == ElementOp::kScale) == part.scaling.has_value() &&
         origin.byte == expected_byte_offset(part, at, *storage);
}

}  // namespace

Status check_origins(const Program& program, OutputId output, const Part& part, const Box& tile,
                     const PartStorage* storage, std::string_view fqn) {
  return check_origins(program, jobs_of(program, output), part, tile, storage, fqn);
}

Status check_origins(const Program& program, JobRange jobs, const Part& part, const Box& tile,
                     const PartStorage* storage, std::string_view fqn) {
  if (is_empty(part.box)) return {};
  const std::size_t ndim = part.box.sizes.size();
  Extents local(ndim);
  auto check = [&](const Extents& at) -> Status {
    for (std::size_t d = 0; d < ndim; ++d) local[d] = at[d] - tile.offsets[d];
    auto origin = origin_of(program, jobs, local);
    if (origin && originates_from(program, *origin, part, at, storage)) return {};
    return fail(ErrorKind::kDamaged,
                "nothing was written: the program takes the element at " + to_text(at) +
                    " from elsewhere than the plan does, which is a mistake in Shardwright",
                Place{.file = {}, .tensor = std::string(fqn)}, "please report it with the plan");
  };
  Extents at = part.box.offsets;
  SHW_CHECK(check(at));
  for (std::size_t d = 0; d < ndim; ++d) {
    if (part.box.sizes[d] < 2) continue;
    ++at[d];
    SHW_CHECK(check(at));
    --at[d];
  }
  for (std::size_t d = 0; d < ndim; ++d) at[d] += part.box.sizes[d] - 1;
  return check(at);
}

}  // namespace shw
