// SPDX-License-Identifier: LGPL-2.1-or-later
// One structured line a happening, to the journal where standard error leads there, else to standard error, without ever
// waiting for either.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "log.h"

namespace nvmepolicy {

/// Kinds of happenings, each with a MESSAGE_ID of its own to filter by: `journalctl MESSAGE_ID=…`.
enum class Happening {
    started,
    stopping,
    configuration,
    appeared,
    left,
    changed,
    not_verified,
    verified,
    foreign_write,
    stuck,
    answered,
    breaker,
    power_source,
    profile,
    story,
    trouble
};

struct JournalLine {
    LogLevel level = LogLevel::info;
    Happening happening = Happening::trouble;
    std::string text;
    std::vector<std::pair<const char*, std::string>> fields; ///< NVME_CONTROLLER, ATTRIBUTE, FROM, TO, ORIGIN, REASON
};

[[nodiscard]] const char* message_id(Happening happening);

/// Where lines go.
class JournalSink {
public:
    virtual ~JournalSink() = default;
    virtual void say(const JournalLine& line) = 0;
};

class Journal : public JournalSink {
public:
    explicit Journal(LogLevel most);
    ~Journal() override;
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;
    Journal(Journal&&) = delete;
    Journal& operator=(Journal&&) = delete;

    /// Lines that could not be handed over are counted, and the count is said with the next one that can.
    void say(const JournalLine& line) override;
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

private:
    [[nodiscard]] bool send(const JournalLine& line) const;

    LogLevel most_;
    int socket_ = -1; ///< to journald; -1: standard error
    std::uint64_t dropped_ = 0;
    std::uint64_t unsaid_ = 0;
};

} // namespace nvmepolicy
