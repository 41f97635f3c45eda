// SPDX-License-Identifier: LGPL-2.1-or-later
// What people are told about outcomes: each story once, and not too often.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "journal.h"
#include "reconcile/reconcile.h"

namespace nvmepolicy {

class Publisher {
public:
    explicit Publisher(JournalSink& journal) : journal_(journal) {}

    /// Says what is new since the last outcome of that controller.
    void outcome(const Outcome& outcome, Milliseconds now);
    void left(const std::string& name, Milliseconds now);
    void stuck(const std::string& name, Milliseconds for_how_long, Milliseconds now);
    void breaker(const std::string& name, const std::string& reason, Milliseconds now);
    void breaker_cleared(const std::string& name, Milliseconds now);
    /// When the last of what was left out may be said; none: nothing was left out.
    [[nodiscard]] std::optional<Milliseconds> due() const;
    /// Says it, of every controller whose minute is over: what was said last must not be what was true before.
    void catch_up(Milliseconds now);
    /// Something about the service itself.
    void say(LogLevel level, Happening happening, std::string text) const;

private:
    /// What was last said of a controller, and how much lately.
    struct Said {
        std::string identity{}; ///< model and serial, once it was introduced; empty again when it has left
        std::string verdict{};  ///< the reason why it is not in order; empty: it is
        std::string failure{};  ///< the line of the last change, if that failed: it is tried again, and not told again
        bool stuck = false;
        bool tripped = false; ///< its breaker
        Milliseconds window{0};
        int lines_in_window = 0;
        int suppressed = 0;
        std::optional<JournalLine> newest_suppressed;
    };
    void line(Said& said, Milliseconds now, const std::string& name, JournalLine line);

    JournalSink& journal_;
    std::map<std::string, Said> said_;
    std::set<std::string> left_out_; ///< who has a newest suppressed line
};

} // namespace nvmepolicy
