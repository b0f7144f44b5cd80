#include "core/exec/device.h"
#include "core/exec/forecast.h"

namespace shw {
namespace {

// Output bytes of all jobs of the program. Chunks that are copied whole have no job; a GPU never
// makes those faster.
std::uint64_t bytes_converted(const Program& program) {
  std::uint64_t bytes = 0;
  for (const ProgramJob& job : program.jobs)
    bytes += static_cast<std::uint64_t>(volume(program.sizes(job)).value_or(0)) * size_of(job.to);
  return bytes;
}

}  // namespace

Result<Executors> choose_executors(const DeviceOptions& options, const Program& program) {
  DeviceLoad load{bytes_converted(program)};
  load.seconds = [&program](Executor& executor) -> Result<double> {
    SHW_TRY(const ComputeSeconds seconds, measure_compute_seconds(program, executor));
    return seconds.make;
  };
  return choose_for(options, load);
}

}  // namespace shw
