// SPDX-License-Identifier: LGPL-2.1-or-later
#include "story_player.h"

#include <utility>

namespace nvmepolicy {

StoryPlayer::StoryPlayer(Loop& loop, const Story& story, Cast cast, Say say, Loop::Callback ended, Milliseconds pause)
    : loop_(loop)
    , story_(story)
    , cast_(std::move(cast))
    , say_(std::move(say))
    , ended_(std::move(ended))
    , pause_(pause)
{
}

void StoryPlayer::begin()
{
    done_ = 0;
    wait();
}

void StoryPlayer::wait()
{
    timer_ = loop_.after(pause_, [this] { next(); });
}

void StoryPlayer::next()
{
    if (done_ == story_.steps.size()) {
        const Loop::Callback ended = ended_; // which may drop this object
        return ended();
    }
    const StoryStep& step = story_.steps[done_++];
    say_(told(step, cast_));
    (cast_.*step.happens)();
    wait();
}

} // namespace nvmepolicy
