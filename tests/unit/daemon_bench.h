// SPDX-License-Identifier: LGPL-2.1-or-later
// A service without its ears, unless it is to listen(): loop, pool, reconciler and publisher on simulated drives, and a test
// that is a list of steps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

#include "event_loop.h"
#include "reconciler.h"
#include "simulated_events.h"
#include "temporary_directory.h"
#include "watched_host.h"
#include "worker_pool.h"

namespace nvmepolicy {

/// Holds threads up until it is opened.
class Gate {
public:
    void pass()
    {
        std::unique_lock lock(mutex_);
        ++reached_;
        changed_.wait(lock, [this] { return open_; });
    }
    void open()
    {
        const std::lock_guard lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    [[nodiscard]] int reached()
    {
        const std::lock_guard lock(mutex_);
        return reached_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
    int reached_ = 0;
};

/// What is written to standard error, as lines.
class StandardError {
public:
    StandardError()
    {
        ::unsetenv("JOURNAL_STREAM");
        kept_ = ::dup(STDERR_FILENO);
        const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        ::dup2(file, STDERR_FILENO);
        ::close(file);
    }
    ~StandardError()
    {
        ::dup2(kept_, STDERR_FILENO);
        ::close(kept_);
    }
    StandardError(const StandardError&) = delete;
    StandardError& operator=(const StandardError&) = delete;
    StandardError(StandardError&&) = delete;
    StandardError& operator=(StandardError&&) = delete;

    [[nodiscard]] std::vector<std::string> lines() const
    {
        std::vector<std::string> all;
        std::ifstream file(path_);
        for (std::string line; std::getline(file, line);)
            all.push_back(line);
        return all;
    }
    [[nodiscard]] int count(const std::string& part) const
    {
        int found = 0;
        for (const std::string& line : lines())
            found += line.find(part) != std::string::npos ? 1 : 0;
        return found;
    }

private:
    TemporaryDirectory directory_;
    std::string path_ = directory_ / "stderr";
    int kept_ = -1;
};

/// WatchedHost is for one thread. This one serialises its notes, but not what a test does in `before`: that may wait.
class SharedHost : public Host {
public:
    explicit SharedHost(Host& behind) : behind_(behind) {}
    using Before = std::function<Answer(const std::string& controller, const std::string& call)>;
    void before(Before before)
    {
        const std::lock_guard lock(mutex_);
        before_ = std::move(before);
    }
    [[nodiscard]] std::vector<std::string> writes()
    {
        const std::lock_guard lock(mutex_);
        return std::exchange(writes_, {});
    }
    /// How often that controller was looked at.
    [[nodiscard]] int looks(const std::string& controller)
    {
        const std::lock_guard lock(mutex_);
        return std::exchange(looks_[controller], 0);
    }

    [[nodiscard]] Result<std::unique_ptr<Directory>> open_directory(const std::string& path) override;
    [[nodiscard]] std::unique_ptr<ControllerDevice> open_device(const Directory& directory, const std::string& name) override;
    [[nodiscard]] bool simulated() const override { return true; }

    Answer note(const std::string& controller, const std::string& call)
    {
        Before before;
        {
            const std::lock_guard lock(mutex_);
            if (call == "open class/nvme/" + controller)
                ++looks_[controller];
            before = before_;
        }
        return before ? before(controller, call) : Answer{};
    }
    void wrote(const std::string& text)
    {
        const std::lock_guard lock(mutex_);
        writes_.push_back(text);
    }

private:
    Host& behind_;
    std::mutex mutex_;
    Before before_;
    std::vector<std::string> writes_;
    std::map<std::string, int> looks_;
};

class SharedDirectory : public Directory {
public:
    SharedDirectory(SharedHost& host, std::string controller, std::unique_ptr<Directory> behind)
        : host_(host)
        , controller_(std::move(controller))
        , behind_(std::move(behind))
    {
    }
    [[nodiscard]] const std::string& path() const override { return behind_->path(); }
    [[nodiscard]] std::uint64_t object() const override { return behind_->object(); }
    [[nodiscard]] Result<std::string> read(const std::string& attribute) const override
    {
        Answer answer = host_.note(controller_, attribute);
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        if (auto* text = std::get_if<std::string>(&answer))
            return *text;
        return behind_->read(attribute);
    }
    [[nodiscard]] Result<std::vector<std::string>> list(const std::string& below) const override
    {
        Answer answer = host_.note(controller_, "list " + behind_->path());
        if (auto* text = std::get_if<std::string>(&answer))
            return std::vector{*text};
        return behind_->list(below);
    }
    [[nodiscard]] const Directory& behind() const { return *behind_; }

private:
    SharedHost& host_;
    std::string controller_;
    std::unique_ptr<Directory> behind_;
};

class SharedDevice : public ControllerDevice {
public:
    SharedDevice(SharedHost& host, std::string name, std::unique_ptr<ControllerDevice> behind)
        : host_(host)
        , name_(std::move(name))
        , behind_(std::move(behind))
    {
    }
    [[nodiscard]] Result<std::vector<std::uint8_t>> identify_controller() override
    {
        Answer answer = host_.note(name_, "identify");
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        return behind_->identify_controller();
    }
    [[nodiscard]] Result<FeatureReply> get_feature(std::uint8_t feature, std::uint8_t select, std::uint32_t length) override
    {
        Answer answer = host_.note(name_, "get-feature");
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        return behind_->get_feature(feature, select, length);
    }
    [[nodiscard]] Result<std::string> read_attribute(const std::string& attribute) override
    {
        return behind_->read_attribute(attribute);
    }
    [[nodiscard]] Result<std::string> read_tolerance() override
    {
        Answer answer = host_.note(name_, "read-tolerance");
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        return behind_->read_tolerance();
    }
    [[nodiscard]] Result<void> write_tolerance(const LatencyTolerance& tolerance, const StillWanted& still_wanted) override
    {
        Answer answer = host_.note(name_, "write-tolerance");
        if (auto* refusal = std::get_if<Refusal>(&answer))
            return *refusal;
        auto written = behind_->write_tolerance(tolerance, still_wanted);
        if (written)
            host_.wrote(name_ + " " + tolerance.kernel_text());
        return written;
    }

private:
    SharedHost& host_;
    std::string name_;
    std::unique_ptr<ControllerDevice> behind_;
};

inline Result<std::unique_ptr<Directory>> SharedHost::open_directory(const std::string& path)
{
    const std::string prefix = "class/nvme/";
    const std::string controller = path.starts_with(prefix) ? path.substr(prefix.size()) : "";
    Answer answer = note(controller, "open " + path);
    if (auto* refusal = std::get_if<Refusal>(&answer))
        return *refusal;
    auto directory = behind_.open_directory(path);
    if (!directory)
        return directory.error();
    return std::unique_ptr<Directory>(std::make_unique<SharedDirectory>(*this, controller, *std::move(directory)));
}

inline std::unique_ptr<ControllerDevice> SharedHost::open_device(const Directory& directory, const std::string& name)
{
    return std::make_unique<SharedDevice>(*this, name,
                                          behind_.open_device(dynamic_cast<const SharedDirectory&>(directory).behind(), name));
}

/// The whole of it. Never destroyed, as in the service: detached threads may still use it.
class Daemon {
public:
    StandardError& log;
    SimulatedHost simulated;
    SharedHost host{simulated};
    EventLoop loop;
    WorkerPool& pool;
    LedgerStore ledger;
    BreakerStore breaker;
    Journal journal{LogLevel::debug};
    Publisher publisher{journal};
    Milliseconds later{0};           ///< that much the clocks are ahead
    Milliseconds asleep{36'000'000}; ///< what they say of suspend; some of it was before the service began
    std::optional<Reconciler> reconciler;
    SimulatedEvents events{simulated.kernel(), loop};
    std::optional<Announcements> announcements;

    /// With one thread jobs run one after the other, and settle() is exact.
    static Daemon& start(StandardError& log, const Policy& policy = {}, std::size_t threads = 1,
                         std::uint64_t boot_default = 100000)
    {
        // Its threads are never joined, so it is never destroyed, and neither is the list that the leak checker finds it by.
        static auto& reachable = *new std::vector<Daemon*>;
        reachable.push_back(new Daemon(log, policy, threads));
        Daemon& d = *reachable.back();
        d.simulated.machine.default_ps_max_latency_us = boot_default;
        return d;
    }

    Daemon& then(std::function<void()> action)
    {
        return step([] { return true; }, std::move(action));
    }
    /// Waits for a condition, up to 20 s.
    Daemon& until(std::function<bool()> condition)
    {
        return step(std::move(condition), [] {});
    }
    /// Everything that was asked for has been done, as far as no timer is involved. For one thread.
    Daemon& settle()
    {
        auto rounds = std::make_shared<int>(0);
        then([this, rounds] { fence(rounds); });
        return until([rounds] { return *rounds == 5; });
    }
    /// Time for other threads to do what they should not do. A test that waits for something else is better.
    Daemon& idle()
    {
        auto turns = std::make_shared<int>(0);
        return until([turns] { return ++*turns > 500; });
    }
    /// As the service begins.
    Daemon& begin()
    {
        then([this] {
            reconciler->look_at_power();
            reconciler->enumerate();
        });
        return settle();
    }
    /// What befalls the simulated machine is announced, without a udev daemon.
    Daemon& listen()
    {
        announcements.emplace(loop, *reconciler, publisher, [] { return false; });
        events.deliver_to(*announcements);
        return *this;
    }
    void run()
    {
        tick();
        EXPECT_EQ(loop.run(), 0) << "a step was waited for in vain, " << steps_.size() << " are left";
    }

private:
    Daemon(StandardError& to, const Policy& policy, std::size_t threads) : log(to), pool(*new WorkerPool(threads, threads))
    {
        reconciler.emplace(Reconciler::Surroundings{loop, pool, host, ledger, breaker, &events, publisher,
                                                    [this] {
                                                        return Clocks{read_clocks().since_boot + later, asleep};
                                                    }},
                           policy);
    }
    struct Step {
        std::function<bool()> condition;
        std::function<void()> action;
    };
    Daemon& step(std::function<bool()> condition, std::function<void()> action)
    {
        steps_.push_back({std::move(condition), std::move(action)});
        return *this;
    }
    void fence(const std::shared_ptr<int>& rounds)
    {
        pool.submit([this, rounds] {
            loop.post([this, rounds] {
                fence_ = loop.soon([this, rounds] {
                    fence_.reset();
                    if (++*rounds < 5)
                        fence(rounds);
                });
            });
        });
    }
    void tick()
    {
        while (!steps_.empty() && steps_.front().condition()) {
            const Step step = std::move(steps_.front());
            steps_.pop_front();
            step.action();
        }
        if (steps_.empty())
            return loop.exit(0);
        if (std::chrono::steady_clock::now() > deadline_)
            return loop.exit(1);
        ::usleep(200);
        tick_ = loop.soon([this] { tick(); }); // a timer of the loop's may be a quarter of a second late
    }

    std::deque<Step> steps_;
    std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    EventLoop::Source tick_;
    EventLoop::Source fence_;
};

inline Policy policy_with(const std::string& profile)
{
    Policy policy;
    policy.daemon.profile.value = profile;
    return policy;
}

} // namespace nvmepolicy
