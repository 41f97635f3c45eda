// SPDX-License-Identifier: LGPL-2.1-or-later
// Plays a story on a simulated machine, step by step on the loop.
#pragma once

#include <functional>
#include <string>

#include "loop.h"
#include "simulation/stories.h"

namespace nvmepolicy {

/// Also before the first step and after the last one. Longer than it takes until a plug is taken to rest, see
/// announcements.cpp, and as much as a timer of the loop may be late.
inline constexpr Milliseconds pause_between_steps{1'500};

class StoryPlayer {
public:
    using Say = std::function<void(const std::string& text)>;
    /// `say` gets each step's sentence before it happens; `ended` may drop the player, or have it begin() again.
    StoryPlayer(Loop& loop, const Story& story, Cast cast, Say say, Loop::Callback ended,
                Milliseconds pause = pause_between_steps);
    void begin();

private:
    void wait();
    void next();

    Loop& loop_;
    const Story& story_;
    Cast cast_;
    Say say_;
    Loop::Callback ended_;
    Milliseconds pause_;
    std::size_t done_ = 0;
    Loop::Source timer_;
};

} // namespace nvmepolicy
