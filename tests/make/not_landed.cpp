#include "core/rules/check.h"
namespace shw {
__attribute__((weak)) const Rule* find_rule(std::string_view) {
  return nullptr;
}
}  // namespace shw
