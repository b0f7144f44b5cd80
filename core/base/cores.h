// The cores that this process may use, where it is one of several on its machine.
#pragma once

#include <cstddef>
#include <string>

namespace shw {

// Which ones, as the system numbers them ("0,1,5"): processes that a launcher has bound to others
// say something else.
std::string own_cores();
// At most this many threads work, which may be more than there are cores: what somebody asks for on
// a machine that others use too. 0: as many as cores. Said before there is any work.
void limit_threads(std::size_t threads);
// So many processes use them together: each works on its share of threads (worker_count()), at
// least one, unless threads were asked for. Said before there is any work.
void share_cores(std::size_t processes);

}  // namespace shw
