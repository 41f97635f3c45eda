// SPDX-License-Identifier: LGPL-2.1-or-later
#include "guard_child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "device_process.h"
#include "errno_refusal.h"
#include "laned_device.h"
#include "nvmepolicy/decode.h"

namespace nvmepolicy {
namespace {

using device_protocol::AnswerKind;

int milliseconds_until(Patience::Clock::time_point deadline)
{
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Patience::Clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT32_MAX));
}

/// False where it has not ended by then.
bool wait_for_end(int pid, Patience::Clock::time_point deadline)
{
    // glibc 2.36 declares pidfd_open() for C only.
    const UniqueFd ending(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    for (pollfd waiting{ending.get(), POLLIN, 0}; ending;)
        if (const int ready = ::poll(&waiting, 1, milliseconds_until(deadline)); ready >= 0 || errno != EINTR)
            break;
    return ::waitpid(pid, nullptr, WNOHANG) == pid;
}

bool is_errno(const device_protocol::AnswerLine& answer, int number)
{
    return answer.kind == AnswerKind::error_number && answer.number == static_cast<std::uint32_t>(number);
}

Result<void> as_result(const std::string& where, const device_protocol::AnswerLine& answer)
{
    switch (answer.kind) {
    case AnswerKind::ok: return {};
    case AnswerKind::error_number: return errno_refusal(where, "", static_cast<int>(answer.number));
    case AnswerKind::status: return status_refusal(where, answer.number);
    }
    return Refusal{where, "", "unreachable", RefusalKind::failed};
}

} // namespace

GuardChild::GuardChild(std::string name, int directory, std::string program, Patience patience, LeftBehind& left_behind)
    : name_(std::move(name))
    , program_(std::move(program))
    , patience_(patience)
    , left_behind_(left_behind)
    , directory_(duplicate_for_device(directory))
{
}

GuardChild::~GuardChild()
{
    // The end of requests: it puts everything back and ends, now or when its drive lets it (S6).
    if (pid_ >= 0)
        dismiss(missing_ > 0 ? Clock::now() : patience_.deadline(Clock::now()));
}

Result<void> GuardChild::new_counter()
{
    const UniqueFd low(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    UniqueFd high = duplicate_for_device(low.get());
    if (!high)
        return errno_refusal(program_, "", errno);
    const std::lock_guard lock(counting_);
    counter_ = std::move(high);
    doubts_before_ = doubts_;
    return {};
}

Result<void> GuardChild::start()
{
    if (pid_ >= 0)
        return {};
    const auto node = open_controller_node(name_, directory_);
    if (!node)
        return node.error();
    if (auto made = new_counter(); !made)
        return made;
    auto started = start_device(program_, {directory_, *node, counter_}); // Only start() changes counter_.
    if (!started)
        return started.error();
    pid_ = started->pid;
    socket_ = std::move(started->socket);
    received_.clear();
    missing_ = 1;
    const auto greeting = read_answers(program_, std::min(Clock::now() + time_to_start, patience_.end));
    return greeting ? Result<void>{} : Result<void>(greeting.error());
}

/// Whatever it is, it puts back what it has once nobody talks to it any more.
void GuardChild::dismiss(Clock::time_point deadline)
{
    socket_.reset();
    if (!wait_for_end(pid_, deadline))
        left_behind_.add(LeftBehind::nobody, pid_);
    pid_ = -1;
    missing_ = 0;
    held_.clear();
}

Refusal GuardChild::ended(const std::string& where)
{
    constexpr std::chrono::seconds to_die{1};
    dismiss(Clock::now() + to_die);
    return {where, "", program_ + " ended before it answered", RefusalKind::failed};
}

Result<void> GuardChild::receive(const std::string& where, Clock::time_point deadline)
{
    pollfd waiting{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR)
        return {};
    if (ready <= 0)
        return Refusal{where, "",
                       fmt::format("no answer within {} s; the request is left to the kernel",
                                   std::chrono::duration<double>(patience_.per_call).count()),
                       RefusalKind::timed_out};
    std::array<char, 256> bytes;
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return {};
    if (got <= 0)
        return ended(where);
    received_.append(bytes.data(), static_cast<std::size_t>(got));
    return {};
}

Result<GuardChild::Answer> GuardChild::read_answers(const std::string& where, Clock::time_point deadline)
{
    constexpr std::size_t longest_answer = 64;
    Answer answer;
    while (missing_ > 0) {
        const std::size_t end = received_.find('\n');
        if (end == std::string::npos && received_.size() < longest_answer) {
            if (const auto more = receive(where, deadline); !more)
                return more.error();
            continue;
        }
        const std::string line = received_.substr(0, end);
        if (end == std::string::npos || !device_protocol::parse(line, answer) || answer.length != 0) {
            dismiss(Clock::now());
            return Refusal{where, printable_ascii(line), "not an answer of " + program_, RefusalKind::failed};
        }
        received_.erase(0, end + 1);
        --missing_;
    }
    return answer;
}

Result<GuardChild::Answer> GuardChild::ask(const std::string& where, const std::string& request)
{
    if (auto started = start(); !started)
        return started.error();
    if (missing_ > 0) {
        if (const auto late = read_answers(where, Clock::now()); !late)
            return late.error().kind == RefusalKind::timed_out ? still_waited_for(where) : late.error();
    }
    const std::string line = request + "\n";
    if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(line.size()))
        return ended(where);
    ++missing_;
    return read_answers(where, patience_.deadline(Clock::now()));
}

Result<void> GuardChild::hold_locked(const std::string& where, const std::string& leaf)
{
    held_.erase(leaf);
    const auto answer = ask(where, "hold " + leaf);
    if (!answer)
        return answer.error();
    if (is_errno(*answer, EOPNOTSUPP))
        return Refusal{where, "", "a Flush cannot be led to this path, since its controller has several namespaces",
                       RefusalKind::unsupported};
    if (answer->kind == AnswerKind::ok) {
        held_.insert(leaf);
        through_.erase(leaf);
    }
    return as_result(where, *answer);
}

Result<void> GuardChild::hold(const std::string& leaf)
{
    const std::lock_guard lock(conversation_);
    return hold_locked(fmt::format("{}: {}, to be write back and flushed first", name_, leaf), leaf);
}

Result<void> GuardChild::write_through(const std::string& leaf, std::uint64_t doubts)
{
    const std::lock_guard lock(conversation_);
    const std::string where = fmt::format("{}: {}/queue/write_cache", name_, leaf);
    const Refusal doubted{where, "", "not written through: there was a doubt meanwhile", RefusalKind::try_later};
    if (!held_.contains(leaf)) // S2
        return Refusal{where, "", "not written through: nobody stands by to put it back", RefusalKind::try_later};
    std::uint64_t before = 0;
    {
        const std::lock_guard counting(counting_);
        if (doubts_ > doubts || doubts < doubts_before_) // S5
            return doubted;
        before = doubts_before_;
    }
    through_.insert(leaf); // before the attempt, whatever becomes of it
    const auto answer = ask(where, fmt::format("write-through {} {}", leaf, doubts - before));
    if (!answer)
        return answer.error();
    return is_errno(*answer, ESTALE) ? Result<void>(doubted) : as_result(where, *answer);
}

Result<void> GuardChild::write_back_locked(const std::string& where, const std::string& leaf)
{
    if (!held_.contains(leaf)) // This process owes nothing. Holding does the same: it writes write back, and sends a Flush.
        return through_.contains(leaf) ? hold_locked(where, leaf) : Result<void>{};
    const auto answer = ask(where, "give-back " + leaf);
    if (!answer)
        return answer.error();
    if (answer->kind == AnswerKind::ok)
        through_.erase(leaf);
    if (is_errno(*answer, EAGAIN))
        return Refusal{where, "", "not yet; it is done as soon as the controller is live and takes it", RefusalKind::try_later};
    return as_result(where, *answer);
}

Result<void> GuardChild::write_back(const std::string& leaf)
{
    const std::lock_guard lock(conversation_);
    const std::string where = fmt::format("{}: {}, write back and Flush", name_, leaf);
    auto done = write_back_locked(where, leaf);
    if (!done && pid_ < 0) // It was killed. Another one does it.
        done = write_back_locked(where, leaf);
    return done;
}

void GuardChild::doubt()
{
    const std::lock_guard lock(counting_);
    ++doubts_;
    if (counter_)
        ::eventfd_write(counter_.get(), 1); // There is room for more than will ever be.
}

std::uint64_t GuardChild::doubts() const
{
    const std::lock_guard lock(counting_);
    return doubts_;
}

} // namespace nvmepolicy
