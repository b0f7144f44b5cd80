// The cores that this process may use when several processes share one machine.
#pragma once

#include <cstddef>
#include <string>

namespace shw {

// The cores of this process as the system numbers them ("0,1,5"). Processes that a launcher has
// bound to different cores return different texts.
std::string process_core_list();
// Sets the number of worker threads, which may exceed the number of cores; 0 means one per core.
// Must be called before any parallel work starts.
void limit_threads(std::size_t threads);
// Divides the cores among `processes`: worker_count() then returns this process's part, at least 1,
// unless limit_threads() set a number. Must be called before any parallel work starts.
void divide_cores(std::size_t processes);

}  // namespace shw
