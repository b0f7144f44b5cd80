#pragma once

#include "core/rules/rule.h"

namespace shw {

extern const Rule kSpecKey;

}  // namespace shw
