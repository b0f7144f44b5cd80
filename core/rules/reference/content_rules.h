// Rules that look at where contents lie, at config.json and at the shapes of siblings.
#pragma once

#include "core/rules/rule.h"

namespace shw {

extern const Rule kConfigAnnounces, kRouterRows, kContentMoved, kAxisRepeated, kNormsShifted,
    kSiblingAxes;

}  // namespace shw
