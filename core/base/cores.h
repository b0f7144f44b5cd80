// The cores that this process may use, where it is one of several on its machine.
#pragma once

#include <cstddef>
#include <string>

namespace shw {

// Which ones, as the system numbers them ("0,1,5"): processes that a launcher has bound to others
// say something else.
std::string own_cores();
// So many processes use them together: each works on its share of threads (worker_count()), at
// least one. Said before there is any work.
void share_cores(std::size_t processes);

}  // namespace shw
