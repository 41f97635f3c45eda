// SPDX-License-Identifier: LGPL-2.1-or-later
#include "waiting.h"

#include <thread>

namespace nvmepolicy {

void ThreadWaiting::pause(std::chrono::milliseconds time)
{
    std::this_thread::sleep_for(time);
}

} // namespace nvmepolicy
