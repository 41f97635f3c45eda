// SPDX-License-Identifier: LGPL-2.1-or-later
// The guard of a real controller's leaves: a process of its own, which outlives whoever started it for as long as it takes to
// put back what it made write through. See device_protocol.h, and device/guard.h for what it does.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "cache_guard.h"
#include "device_protocol.h"
#include "left_behind.h"
#include "patience.h"
#include "unique_fd.h"

namespace nvmepolicy {

/// A process that is killed is replaced with the next call from a job, and what it had made write through is then put back.
/// Nobody is told of its end by itself; until that call, a doubt has nobody to reach.
class GuardChild : public CacheGuard {
public:
    /// `directory` is duplicated. The process is started with the first call from a job. `left_behind` must outlive the guard.
    GuardChild(std::string name, int directory, std::string program, Patience patience, LeftBehind& left_behind);
    /// Waits for the process to put everything back, no longer than the patience for one call; then it does so on its own.
    ~GuardChild() override;
    GuardChild(const GuardChild&) = delete;
    GuardChild& operator=(const GuardChild&) = delete;
    GuardChild(GuardChild&&) = delete;
    GuardChild& operator=(GuardChild&&) = delete;

    [[nodiscard]] Result<void> hold(const std::string& leaf) override;
    [[nodiscard]] Result<void> write_through(const std::string& leaf, std::uint64_t doubts) override;
    /// `try_later`: it could not be done yet, and the process goes on trying.
    [[nodiscard]] Result<void> write_back(const std::string& leaf) override;

    void doubt() override;
    [[nodiscard]] std::uint64_t doubts() const override;

private:
    using Clock = Patience::Clock;
    using Answer = device_protocol::AnswerLine;

    Result<void> start();
    Result<void> new_counter();
    /// One request. After timed_out the next one is made once the answers that are missing have come.
    Result<Answer> ask(const std::string& where, const std::string& request);
    /// All that are missing; the last of them.
    Result<Answer> read_answers(const std::string& where, Clock::time_point deadline);
    Result<void> receive(const std::string& where, Clock::time_point deadline);
    Refusal ended(const std::string& where);
    void dismiss(Clock::time_point deadline);
    Result<void> hold_locked(const std::string& where, const std::string& leaf);
    Result<void> write_back_locked(const std::string& where, const std::string& leaf);

    std::string name_;
    std::string program_;
    Patience patience_;
    LeftBehind& left_behind_;
    UniqueFd directory_;

    std::mutex conversation_; ///< for whoever talks with the process, which may take as long as the drive does
    // Guarded by conversation_.
    UniqueFd socket_;
    int pid_ = -1;
    int missing_ = 0;               ///< answers that have not come
    std::string received_;          ///< of them
    std::set<std::string> held_;    ///< by this process
    std::set<std::string> through_; ///< written through, or tried, and not known to be back

    mutable std::mutex counting_; ///< never held while anything is waited for
    // Guarded by counting_.
    std::uint64_t doubts_ = 0;
    std::uint64_t doubts_before_ = 0; ///< this process was started; it does not know of them
    UniqueFd counter_;                ///< an eventfd: the doubts that this process has not heard yet
};

} // namespace nvmepolicy
