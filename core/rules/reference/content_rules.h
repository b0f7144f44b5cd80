// Rules about displaced contents, config.json and sibling shapes.
#pragma once

#include "core/rules/rule.h"

namespace shw {

extern const Rule kConfigAnnounces, kConfigNames, kRouterRows, kContentMoved, kAxisRepeated,
    kNormsShifted, kSiblingAxes, kConvertedWrongly, kTokenIds, kGgufKeys, kDraftHeads;

}  // namespace shw
