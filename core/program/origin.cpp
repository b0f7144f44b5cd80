#include "core/program/origin.h"

namespace shw {

std::optional<Origin> origin_of(const Program& program, JobRange jobs, ExtentsView at) {
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    const ProgramJob& job = program.jobs[j];
    ExtentsView begin = program.at(job), sizes = program.sizes(job);
    ExtentsView strides = program.source_strides(job);
    Origin origin{nullptr, job.first, &job};
    bool inside = true;
    for (std::size_t d = 0; d < at.size() && inside; ++d) {
      inside = at[d] >= begin[d] && at[d] < begin[d] + sizes[d];
      origin.byte += (at[d] - begin[d]) * strides[d];
    }
    if (!inside) continue;
    if (job.source == SourceId::kNone) return Origin{nullptr, 0, &job};
    origin.source = &program.source(job.source);
    if (origin.source->form == SourceForm::kStored)
      origin.byte += static_cast<std::int64_t>(origin.source->offset);
    return origin;
  }
  return std::nullopt;
}

}  // namespace shw
