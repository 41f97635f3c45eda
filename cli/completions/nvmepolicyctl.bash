# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of nvmepolicyctl(1) for bash. Asks the service only for the names of profiles, and only if it runs.

_nvmepolicyctl_controllers() {
    local path
    for path in /sys/class/nvme/nvme*; do
        [ -e "$path" ] && printf '%s\n' "${path##*/}"
    done
}

_nvmepolicyctl_profiles() {
    nvmepolicyctl profile list --names 2>/dev/null || printf '%s\n' performance balanced power-saver
}

_nvmepolicyctl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
    local words=
    COMPREPLY=()
    if [ "$command" = run ]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [ "${COMP_WORDS[i]}" = -- ]; then # what follows is another program's command line
                if declare -F _command_offset >/dev/null; then
                    _command_offset $((i + 1))
                else
                    mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
                fi
                return
            fi
        done
    fi
    case $before in
    --config | --simulate | --drive | --for)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --profile) words=$(_nvmepolicyctl_profiles) ;;
    --bus) words='system session' ;;
    --max-latency) words='0 1ms 5ms 25ms' ;;
    --tolerance) words='any auto 25ms 100ms' ;;
    --reason) return ;;
    esac
    if [ -z "$words" ]; then
        if [ "$COMP_CWORD" = 1 ]; then
            words='status show explain plan profile hold run holds reconcile reload breaker monitor predict capture config
                --help --version'
        else
            case $command in
            status | plan) words='--config --simulate --bus --json --help' ;;
            show) words="$(_nvmepolicyctl_controllers) --config --simulate --bus --json --help" ;;
            explain) words="$(_nvmepolicyctl_controllers) --config --simulate --bus --help" ;;
            capture) words="$(_nvmepolicyctl_controllers) --config --simulate --help" ;;
            predict) words='--drive --tolerance --json --help' ;;
            hold) words='--profile --max-latency --for --reason --bus --help' ;;
            run) words='--profile --max-latency --for --reason --bus --help --' ;;
            holds | monitor) words='--bus --json --help' ;;
            reconcile | reload) words='--bus --help' ;;
            profile)
                case ${COMP_WORDS[2]} in
                set) words="$(_nvmepolicyctl_profiles) --bus --help" ;;
                list | get) words='--bus --help' ;;
                esac
                [ "$COMP_CWORD" != 2 ] || words='list get set --help'
                ;;
            breaker)
                words="$(_nvmepolicyctl_controllers) --bus --help"
                [ "$COMP_CWORD" != 2 ] || words='clear --help'
                ;;
            config)
                if [ "$COMP_CWORD" = 2 ]; then
                    words='check show --help'
                elif [ "${COMP_WORDS[2]}" = show ]; then
                    words='--config --help'
                else
                    compopt -o filenames 2>/dev/null
                    mapfile -t COMPREPLY < <(compgen -f -W --help -- "$word")
                    return
                fi
                ;;
            esac
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _nvmepolicyctl nvmepolicyctl
