// SPDX-License-Identifier: LGPL-2.1-or-later
#include "apply.h"

namespace nvmepolicy {

Result<void> apply(const ToleranceChange& change, const Sighting& sighting, const StillWanted& still_wanted)
{
    const auto identity = observe_identity(*sighting.directory);
    if (!identity)
        return Refusal{change.name + ": " + tolerance_attribute, change.to.kernel_text(),
                       "not written, since it is not certain whose it is: " + identity.error().text(), identity.error().kind};
    if (*identity != change.controller || sighting.directory->object() != change.object)
        return Refusal{change.name + ": " + tolerance_attribute, change.to.kernel_text(),
                       "not written, another drive (serial " + identity->serial + ") has this name now", RefusalKind::gone};
    if (change.through)
        if (auto written = sighting.device->write_tolerance(*change.through, still_wanted); !written)
            return written;
    return sighting.device->write_tolerance(change.to, still_wanted);
}

} // namespace nvmepolicy
