// SPDX-License-Identifier: LGPL-2.1-or-later
#include "publish.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "report/text.h"

namespace nvmepolicy {
namespace {

constexpr Milliseconds window{60'000};
constexpr int most_lines_in_window = 10; ///< of one controller

std::string identity_of(const Controller& c)
{
    return fmt::format("{}, serial {}, firmware {}", c.model.empty() ? "unnamed model" : c.model,
                       c.id.serial.empty() ? "-" : c.id.serial, c.firmware.empty() ? "-" : c.firmware);
}

JournalLine about(LogLevel level, Happening happening, std::string text)
{
    return {level, happening, std::move(text), {}};
}

JournalLine change_line(const Outcome& o, const ToleranceChange& c)
{
    JournalLine line = about(o.in_order() ? LogLevel::info : LogLevel::warning, Happening::changed, change_text(o, c));
    line.fields = {{"ATTRIBUTE", tolerance_attribute},
                   {"FROM", c.from.kernel_text()},
                   {"TO", c.to.kernel_text()},
                   {"ORIGIN", c.origin},
                   {"REASON", c.reason}};
    return line;
}

} // namespace

void Publisher::line(Said& said, Milliseconds now, const std::string& name, JournalLine line)
{
    if (now - said.window >= window) {
        said.window = now;
        said.lines_in_window = 0;
    }
    if (++said.lines_in_window > most_lines_in_window) {
        ++said.suppressed;
        said.newest_suppressed = std::move(line);
        left_out_.insert(name);
        return;
    }
    said.newest_suppressed.reset();
    left_out_.erase(name);
    if (said.suppressed > 0)
        line.text += fmt::format(" ({} lines about it were left out)", std::exchange(said.suppressed, 0));
    line.fields.emplace_back("NVME_CONTROLLER", name);
    journal_.say(line);
}

std::optional<Milliseconds> Publisher::due() const
{
    std::optional<Milliseconds> earliest;
    for (const std::string& name : left_out_) {
        const Milliseconds due = said_.at(name).window + window;
        earliest = std::min(earliest.value_or(due), due);
    }
    return earliest;
}

void Publisher::catch_up(Milliseconds now)
{
    for (const std::string& name : std::set(left_out_)) {
        Said& said = said_.at(name);
        if (now - said.window < window)
            continue;
        --said.suppressed;
        JournalLine newest = *std::exchange(said.newest_suppressed, std::nullopt);
        line(said, now, name, std::move(newest));
    }
}

void Publisher::outcome(const Outcome& o, Milliseconds now)
{
    Said& said = said_[o.name];
    if (said.stuck && !o.refused(RefusalKind::timed_out)) {
        said.stuck = false;
        line(said, now, o.name, about(LogLevel::info, Happening::answered, o.name + ": answers again"));
    }
    if (o.controller) {
        const std::string identity = identity_of(*o.controller);
        if (identity != said.identity) {
            std::string text = fmt::format("{}: {}", o.name, identity);
            const auto& ceiling = o.decision.ceiling;
            if (ceiling && ceiling->binds && !ceiling->lifted && o.decision.support == ApstSupport::supported)
                text += fmt::format("; LIMITED by {}, set before us", ceiling->source);
            said.identity = identity;
            said.verdict.clear();
            line(said, now, o.name, about(LogLevel::info, Happening::appeared, std::move(text)));
        }
    }
    if (o.foreign.news && o.controller) {
        JournalLine foreign = about(LogLevel::warning, Happening::foreign_write,
                                    fmt::format("{}: somebody else set the latency tolerance to {}, ours was {}; {}", o.name,
                                                o.foreign_value.kernel_text(), o.decision.tolerance.kernel_text(),
                                                o.foreign.stand == ForeignStand::yield
                                                    ? "theirs stays until the profile or the configuration changes"
                                                    : "ours is written again"));
        foreign.fields = {{"ATTRIBUTE", tolerance_attribute},
                          {"FROM", o.decision.tolerance.kernel_text()},
                          {"TO", o.foreign_value.kernel_text()}};
        line(said, now, o.name, std::move(foreign));
    }
    const bool tried = o.applied || o.error; // A dry run has only a plan, and its verdict says so.
    for (const Change& change : o.plan.changes) {
        JournalLine changed = change_line(o, std::get<ToleranceChange>(change));
        const bool told_before = o.error && changed.text == said.failure;
        said.failure = o.error ? changed.text : std::string{};
        if (tried && !told_before)
            line(said, now, o.name, std::move(changed));
    }

    std::string verdict;
    if (!o.in_order() && !o.gone())
        verdict = o.error ? o.error->text() : o.verdict.reason;
    if (verdict == said.verdict)
        return;
    const bool told = (tried && !o.plan.empty()) || o.foreign.news; // in the line of the change
    if (!told && !verdict.empty())
        line(said, now, o.name, about(LogLevel::warning, Happening::not_verified, fmt::format("{}: {}", o.name, verdict)));
    else if (!told)
        line(said, now, o.name,
             about(LogLevel::info, Happening::verified, fmt::format("{}: in order again: {}", o.name, o.verdict.reason)));
    said.verdict = std::move(verdict);
}

void Publisher::left(const std::string& name, Milliseconds now)
{
    const auto found = said_.find(name);
    if (found == said_.end())
        return;
    Said& said = found->second;
    if (!said.identity.empty()) // Else nobody was told that it was there.
        line(said, now, name, about(LogLevel::info, Happening::left, fmt::format("{}: left ({})", name, said.identity)));
    // Whoever comes and goes all the time under this name is not told of all the time.
    Said kept;
    kept.window = said.window;
    kept.lines_in_window = said.lines_in_window;
    kept.suppressed = said.suppressed;
    kept.newest_suppressed = std::move(said.newest_suppressed);
    said = std::move(kept);
}

void Publisher::stuck(const std::string& name, Milliseconds for_how_long, Milliseconds now)
{
    Said& said = said_[name];
    if (said.stuck)
        return;
    said.stuck = true;
    line(said, now, name,
         about(
             LogLevel::warning, Happening::stuck,
             fmt::format("{}: has not answered for {} s; the others are served meanwhile", name, for_how_long.count() / 1000)));
}

void Publisher::breaker(const std::string& name, const std::string& reason, Milliseconds now)
{
    Said& said = said_[name];
    JournalLine tripped = about(
        LogLevel::error, Happening::breaker,
        fmt::format("{}: {}; it is kept at the latency tolerance it had at boot until the breaker is cleared", name, reason));
    if (std::exchange(said.tripped, true))
        return;
    said.lines_in_window = 0; // Resets may have been told of until now, and this one line must not be left out for them.
    line(said, now, name, std::move(tripped));
}

void Publisher::breaker_cleared(const std::string& name, Milliseconds now)
{
    Said& said = said_[name];
    said.tripped = false;
    line(said, now, name, about(LogLevel::info, Happening::breaker, name + ": its breaker was cleared"));
}

void Publisher::say(LogLevel level, Happening happening, std::string text) const
{
    journal_.say(about(level, happening, std::move(text)));
}

} // namespace nvmepolicy
