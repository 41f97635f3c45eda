// SPDX-License-Identifier: LGPL-2.1-or-later
#include "guard.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
extern const char __executable_start; // NOLINT: the linker's names
extern const char etext;              // NOLINT
}

namespace nvmepolicy {
namespace {

using namespace device_protocol;

constexpr AnswerLine done{AnswerKind::ok, 0, 0};

bool is_errno(const AnswerLine& answer, int number)
{
    return answer.kind == AnswerKind::error_number && answer.number == static_cast<std::uint32_t>(number);
}

/// The disk that these were opened on has been removed; there is nothing left that could be written or flushed.
bool has_left(const AnswerLine& answer, int mode_fd)
{
    char c = 0;
    return is_errno(answer, ENODEV) || (answer.kind != AnswerKind::ok && ::pread(mode_fd, &c, 1, 0) < 0 && errno == ENODEV);
}

bool ready(int fd, short events)
{
    pollfd waiting{fd, events, 0};
    return ::poll(&waiting, 1, 0) > 0;
}

/// Whoever stops the service, or the shell it was tried from, must not stop this: it ends by the end of its requests.
void ignore_signals()
{
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE})
        ::signal(signal, SIG_IGN);
}

/// The root disk may be the one that hangs: no page of this program may have to be read from it then. What is used on the way
/// back is used by hold() first, so the libraries' pages, some megabytes, are locked as they are touched and not as a whole.
/// Best effort: it takes LimitMEMLOCK=, which counts all of them. Not MCL_FUTURE: beyond the limit nothing could be allocated
/// then.
void stay_in_memory()
{
    ::mlockall(MCL_CURRENT | MCL_ONFAULT);
    const auto length = static_cast<std::size_t>(&etext - &__executable_start);
    ::mlock(&__executable_start, length);
}

/// Whoever is short of memory must not take the one who puts things back. Best effort: below what the starter had it takes
/// CAP_SYS_RESOURCE.
void stay_alive()
{
    const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    [[maybe_unused]] const ssize_t put = ::write(fd, "-1000", 5);
    ::close(fd);
}

} // namespace

Guard::Controller Guard::controller()
{
    char state[32];
    if (read_line("state", state, sizeof state) < 0)
        return errno == ENOENT || errno == ENODEV ? Controller::gone : Controller::not_live;
    if (std::strcmp(state, "live") == 0)
        return Controller::live;
    // "deleting" and "deleting (no IO)". Source: nvme_sysfs_show_state()
    if (std::strncmp(state, "deleting", std::strlen("deleting")) == 0 || std::strcmp(state, "dead") == 0)
        return Controller::gone;
    return Controller::not_live;
}

Guard::Leaf* Guard::find(const char* name)
{
    const auto found = std::find_if(leaves_.begin(), leaves_.end(), [name](const Leaf& leaf) {
        return leaf.standing != Standing::none && std::strcmp(leaf.name.data(), name) == 0;
    });
    return found == leaves_.end() ? nullptr : &*found;
}

void Guard::forget(Leaf& leaf)
{
    if (leaf.mode_fd >= 0)
        ::close(leaf.mode_fd);
    close_flush_route(leaf.route);
    leaf = {};
}

void Guard::forget_all()
{
    for (Leaf& leaf : leaves_)
        if (leaf.standing != Standing::none)
            forget(leaf);
}

bool Guard::owes_any() const
{
    return std::any_of(leaves_.begin(), leaves_.end(), [](const Leaf& leaf) { return leaf.owes(); });
}

void Guard::call_back(Leaf& leaf)
{
    if (leaf.standing != Standing::through)
        return;
    leaf.standing = Standing::returning;
    retry_ms_ = first_retry_ms;
}

void Guard::call_all_back()
{
    for (Leaf& leaf : leaves_)
        call_back(leaf);
}

// --- the way back --------------------------------------------------------------------------------------------------------

Guard::Answer Guard::settle_mode(Leaf& leaf)
{
    if (leaf.standing != Standing::returning)
        return done;
    const Answer written = write_cache_mode(leaf.mode_fd, CacheMode::write_back);
    if (written.kind == AnswerKind::ok)
        leaf.standing = Standing::returning_flush;
    return written;
}

/// Only after the mode: a Flush before it would not cover what is acknowledged between the two.
Guard::Answer Guard::settle_flush(Leaf& leaf)
{
    if (leaf.standing != Standing::returning_flush)
        return done;
    const Answer flushed = flush(leaf.route.node, leaf.route.nsid);
    if (flushed.kind == AnswerKind::ok)
        leaf.standing = Standing::flushed;
    return flushed;
}

void Guard::settle()
{
    if (!owes_any())
        return;
    switch (controller()) {
    case Controller::gone: forget_all(); return;
    case Controller::not_live: // S1: armed to fire on live
        retry_ms_ = first_retry_ms;
        return;
    case Controller::live: break;
    }
    // All modes first. What a Flush is owed for does not get more meanwhile, what is acknowledged under write through does.
    for (const auto step : {&Guard::settle_mode, &Guard::settle_flush})
        for (Leaf& leaf : leaves_)
            if (leaf.owes() && has_left((this->*step)(leaf), leaf.mode_fd))
                forget(leaf);
    retry_ms_ = owes_any() ? std::min(2 * retry_ms_, longest_retry_ms) : first_retry_ms;
}

/// S5. Whatever is asked, what was decided before a doubt is not done after it.
void Guard::hear_doubts()
{
    std::uint64_t more = 0;
    if (::read(doubts_fd, &more, sizeof more) != sizeof more) // does not block
        return;
    doubts_ += more;
    call_all_back();
}

// --- requests ------------------------------------------------------------------------------------------------------------

/// S2: the way back is walked before the way there. Whatever it needs is open after this.
Guard::Answer Guard::hold(const char* name)
{
    switch (controller()) {
    case Controller::live: break;
    case Controller::not_live: return error_answer(EAGAIN);
    case Controller::gone: return error_answer(ENODEV);
    }
    Leaf* leaf = find(name);
    if (leaf) { // By the old descriptors: the name may be another disk's by now.
        call_back(*leaf);
        settle();
        leaf = find(name);
        if (leaf && leaf->owes())
            return error_answer(EAGAIN);
    } else {
        leaf = std::find_if(leaves_.begin(), leaves_.end(), [](const Leaf& l) { return l.standing == Standing::none; });
        if (leaf == leaves_.end())
            return error_answer(EMFILE);
    }
    if (!leaf) // It was held, and has left.
        return error_answer(ENODEV);
    forget(*leaf);
    leaf->mode_fd = open_cache_mode(name);
    Answer answer = leaf->mode_fd < 0 ? error_answer() : open_flush_route(name, leaf->route);
    if (answer.kind == AnswerKind::ok)
        answer = write_cache_mode(leaf->mode_fd, CacheMode::write_back);
    if (answer.kind == AnswerKind::ok)
        answer = flush(leaf->route.node, leaf->route.nsid);
    if (answer.kind != AnswerKind::ok) {
        forget(*leaf);
        return answer;
    }
    std::strncpy(leaf->name.data(), name, leaf->name.size() - 1);
    leaf->standing = Standing::flushed;
    return done;
}

Guard::Answer Guard::write_through(const char* name, std::uint64_t doubts)
{
    Leaf* leaf = find(name);
    if (!leaf)
        return error_answer(EINVAL); // S2: hold first
    if (leaf->owes())
        return error_answer(EAGAIN);
    switch (controller()) {
    case Controller::live: break;
    case Controller::not_live: return error_answer(EAGAIN);
    case Controller::gone: return error_answer(ENODEV);
    }
    hear_doubts(); // S5, as late as can be
    if (doubts_ > doubts)
        return error_answer(ESTALE);
    leaf->standing = Standing::through; // before the attempt, whatever becomes of it
    const Answer written = write_cache_mode(leaf->mode_fd, CacheMode::write_through);
    hear_doubts(); // S5: whatever came while it was under way
    if (written.kind == AnswerKind::ok && leaf->standing == Standing::through)
        return done;
    call_back(*leaf);
    settle(); // what that leaves is tried again from the loop
    return written.kind == AnswerKind::ok ? error_answer(ESTALE) : written;
}

Guard::Answer Guard::give_back(const char* name)
{
    if (Leaf* leaf = find(name))
        call_back(*leaf);
    settle();
    // Nothing is owed for one that is not held, or has left.
    const Leaf* leaf = find(name);
    return leaf && leaf->owes() ? error_answer(EAGAIN) : done;
}

Guard::Answer Guard::serve_words(const char* request)
{
    Words words(request);
    const std::string_view what = words.word();
    const bool hold_asked = what == "hold", through_asked = what == "write-through", back_asked = what == "give-back";
    // Nothing else: while a drive takes its time for an admin command, no doubt would be heard.
    if (!hold_asked && !through_asked && !back_asked)
        return error_answer(EINVAL);
    char leaf[leaf_name_size];
    if (!words.leaf(leaf))
        return error_answer(EINVAL);
    const auto doubts = through_asked ? words.number(UINT64_MAX) : 0;
    if (!doubts || !words.at_end())
        return error_answer(EINVAL);
    if (through_asked)
        return write_through(leaf, *doubts);
    return hold_asked ? hold(leaf) : give_back(leaf);
}

bool Guard::has_line() const
{
    return std::memchr(input_.data(), '\n', input_used_) != nullptr;
}

/// Whatever there is, so that half a request keeps nobody from hearing a doubt. A request that is too long is the end of all.
void Guard::read_requests()
{
    if (has_line())
        return;
    const ssize_t got = ::read(STDIN_FILENO, input_.data() + input_used_, input_.size() - input_used_);
    if (got < 0 && errno == EINTR)
        return;
    if (got <= 0) {
        over_ = true;
        return;
    }
    input_used_ += static_cast<std::size_t>(got);
    if (input_used_ == input_.size() && !has_line())
        over_ = true;
}

void Guard::serve_next_request()
{
    if (over_ || !has_line())
        return;
    const auto length = static_cast<std::size_t>(std::find(input_.begin(), input_.end(), '\n') - input_.begin());
    input_[length] = '\0';
    const Answer line = serve_words(input_.data());
    std::copy(input_.begin() + static_cast<std::ptrdiff_t>(length) + 1,
              input_.begin() + static_cast<std::ptrdiff_t>(input_used_), input_.begin());
    input_used_ -= length + 1;
    // Nobody may keep the guard waiting with an answer that is not fetched.
    if (!ready(STDOUT_FILENO, POLLOUT) || !answer(line, nullptr))
        over_ = true;
}

// --- the loop ------------------------------------------------------------------------------------------------------------

/// Nothing wakes the guard while nothing is owed.
void Guard::wait()
{
    pollfd waiting[] = {{doubts_fd, POLLIN, 0}, {over_ ? -1 : STDIN_FILENO, POLLIN, 0}};
    int timeout = owes_any() ? retry_ms_ : -1;
    if (!over_ && has_line())
        timeout = 0;
    if (::poll(waiting, 2, timeout) > 0 && waiting[1].revents != 0)
        read_requests();
}

void Guard::run()
{
    do {
        wait();
        hear_doubts(); // S5: before anything else
        if (over_)
            call_all_back(); // S6
        settle();            // S1
        serve_next_request();
    } while (!over_ || owes_any());
}

int guard()
{
    ignore_signals();
    ::fcntl(doubts_fd, F_SETFL, O_NONBLOCK);
    stay_alive();
    stay_in_memory();
    if (!answer({AnswerKind::ok, 0, 0}, nullptr))
        return 1;
    static Guard guard; // not on the stack: all its pages are locked
    guard.run();
    return 0;
}

} // namespace nvmepolicy
