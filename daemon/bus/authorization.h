// SPDX-License-Identifier: LGPL-2.1-or-later
// Who may change something: root, and whom polkit says yes to.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "bus/connection.h"

namespace nvmepolicy::bus {

class Authorization {
public:
    explicit Authorization(sdbus::IConnection& connection);

    /// None: yes. Else why not.
    using Answer = std::function<void(const std::optional<std::string>& refused)>;
    /// Asks the bus whether `sender` is root; everyone else needs polkit's yes to `action`, for which a person may be asked.
    /// Any error is a no. False: too many of that sender wait for an answer already; then `answer` is not called.
    [[nodiscard]] bool ask(const std::string& sender, const std::string& action, Answer answer);
    [[nodiscard]] bool waits() const { return waiting_ != 0; }
    /// Whatever it still waits for is answered with no.
    void client_left(const std::string& sender);

private:
    void ask_polkit(const std::string& sender, const std::string& action, const Answer& answer);

    std::unique_ptr<sdbus::IProxy> bus_;
    std::unique_ptr<sdbus::IProxy> polkit_;
    struct Client {
        std::size_t waiting = 0;
        bool left = false;
    };
    std::map<std::string, Client> clients_; ///< those that wait
    std::size_t waiting_ = 0;
    std::size_t asked_polkit_ = 0; ///< of these
};

} // namespace nvmepolicy::bus
