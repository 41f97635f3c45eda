// SPDX-License-Identifier: LGPL-2.1-or-later
// How the simulated kernel's work takes place in time.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "nvmepolicy/units.h"

namespace nvmepolicy {

/// `what` is for a trace. A lock_guard on it keeps real threads out, where there are any.
class KernelTime {
public:
    virtual ~KernelTime() = default;
    virtual void lock() = 0;
    virtual void unlock() = 0;
    /// Since boot.
    [[nodiscard]] virtual Milliseconds now() const = 0;
    /// Anything may happen here before the caller goes on.
    virtual void step(const std::string& what) = 0;
    /// The caller sleeps; false: `deadline` came before the condition held. None: for ever.
    virtual bool sleep_until(const std::string& what, const std::function<bool()>& condition,
                             std::optional<Milliseconds> deadline) = 0;
    /// Work that goes on beside the caller's.
    virtual void spawn(const std::string& what, std::function<void()> work) = 0;
};

/// Everything happens at once and nothing ever hangs. For any number of threads.
class Instantly : public KernelTime {
public:
    void lock() override { mutex_.lock(); }
    void unlock() override { mutex_.unlock(); }
    [[nodiscard]] Milliseconds now() const override { return Milliseconds{0}; }
    void step(const std::string&) override {}
    bool sleep_until(const std::string&, const std::function<bool()>& condition, std::optional<Milliseconds>) override
    {
        return condition();
    }
    void spawn(const std::string&, std::function<void()> work) override { work(); }

private:
    std::recursive_mutex mutex_;
};

} // namespace nvmepolicy
