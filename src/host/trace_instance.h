// SPDX-License-Identifier: LGPL-2.1-or-later
// The door to the kernel's trace: an instance of our own that shows who reads and sets features, so that nobody else's tracing
// is disturbed. Its lines are understood by parse_trace_line().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nvmepolicy/result.h"
#include "unique_fd.h"

namespace nvmepolicy {

/// Where tracefs is, and how instances come and go: in tracefs, making the directory makes its files.
class TraceFiles {
public:
    virtual ~TraceFiles() = default;
    /// Paths begin with this; empty on a real machine.
    [[nodiscard]] virtual std::string root() const { return {}; }
    /// As mkdir(2) and rmdir(2).
    [[nodiscard]] virtual int make_directory(const std::string& path) const;
    [[nodiscard]] virtual int remove_directory(const std::string& path) const;
};

/// Runs as long as it lives. May be handed from the thread that made it to another one.
class TraceInstance {
public:
    /// Makes the instance and lets it run; one that was left over from a crash is replaced. May wait, though for no drive.
    /// Refuses `absent`: no tracefs, or nvme_core is not loaded; `denied`: by a sandbox or by lockdown; `try_later`: somebody
    /// else reads it.
    [[nodiscard]] static Result<TraceInstance>
    run(const std::shared_ptr<const TraceFiles>& files = std::make_shared<TraceFiles>());
    /// Does nothing where there is none.
    static Result<void> remove_left_over(const TraceFiles& files = TraceFiles());

    TraceInstance(TraceInstance&&) noexcept = default;
    TraceInstance& operator=(TraceInstance&&) = delete;
    TraceInstance(const TraceInstance&) = delete;
    TraceInstance& operator=(const TraceInstance&) = delete;
    ~TraceInstance();

    /// Readable when there are lines. For the event loop.
    [[nodiscard]] int descriptor() const { return pipe_.get(); }
    /// The lines that have come, without their ends; where there are very many, the others come with the next call. Never
    /// waits. A line that is too long to be one is given as `too_long`. An error: nothing will come any more.
    [[nodiscard]] Result<std::vector<std::string>> read();
    /// The events are enabled and filtered as we left them, as far as the files say: somebody may have meddled, or nvme_core
    /// was loaded anew, which forgets both. For a job.
    [[nodiscard]] bool intact() const;
    /// What its destructor does, with the reason where that fails.
    Result<void> remove();

    static constexpr const char* too_long = "(a line that is too long)";

private:
    TraceInstance(std::shared_ptr<const TraceFiles> files, std::string path) : files_(std::move(files)), path_(std::move(path))
    {
    }
    Result<void> set_up();
    Result<void> write(const std::string& file, const std::string& text) const;
    void take(const char* text, std::size_t length, std::vector<std::string>& lines);

    std::shared_ptr<const TraceFiles> files_; ///< none: moved from, or removed
    std::string path_;
    UniqueFd pipe_;
    std::string partial_;   ///< a line of which the end has not come
    bool skipping_ = false; ///< the rest of one that was too long
};

} // namespace nvmepolicy
