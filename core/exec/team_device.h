// Summary of the devices that the ranks have used.
#pragma once

#include "core/base/team.h"
#include "core/exec/device.h"

namespace shw {

// Equal on all ranks: devices that differ are listed by rank, bytes and seconds are summed, the
// first failure is reported with its rank. `why` is that of rank 0.
Result<DeviceUse> gather_device_use(Team& team, const DeviceUse& own);

}  // namespace shw
