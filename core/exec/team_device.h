// What became of the devices of a team, each of whose members has its own.
#pragma once

#include "core/base/team.h"
#include "core/exec/device.h"

namespace shw {

// The same on all members: devices that differ are named by rank, bytes and seconds are of all, and
// of failures the first one's, with whose it was. `why` is the first member's.
Result<DeviceUse> use_of_all(Team& team, const DeviceUse& own);

}  // namespace shw
