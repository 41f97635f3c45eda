# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of nvmepolicyctl(1) for fish. Asks the service only for the names of profiles, and only if it runs.

function __nvmepolicyctl_controllers
    for path in /sys/class/nvme/nvme*
        basename $path
    end
end

function __nvmepolicyctl_profiles
    nvmepolicyctl profile list --names 2>/dev/null
    or printf '%s\n' performance balanced power-saver
end

function __nvmepolicyctl_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and contains -- $words[2] $argv; and not contains -- -- $words
end

function __nvmepolicyctl_nothing_yet
    test (count (commandline -opc)) -eq 1
end

function __nvmepolicyctl_second_of
    set -l words (commandline -opc)
    test (count $words) -eq 2; and test $words[2] = $argv[1]
end

function __nvmepolicyctl_after
    set -l words (commandline -opc)
    test (count $words) -gt 2; and test "$words[2] $words[3]" = "$argv[1]"
end

complete -c nvmepolicyctl -f
complete -c nvmepolicyctl -l help -d 'List the options'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -l version -d 'Print the version'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a status -d 'One line a controller'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a show -d 'Everything about one controller'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a explain -d 'Why each value is what it is'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a plan -d 'What a reconcile would change now'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a profile -d 'List, get or set profiles'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a hold -d 'Hold until interrupted'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a run -d 'Hold for as long as a command runs'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a holds -d 'Who holds what'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a reconcile -d 'Look at every drive now'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a reload -d 'Read the configuration again'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a breaker -d 'The drop-out breaker'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a monitor -d 'Print changes as they come'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a predict -d 'The APST table for a drive file'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a capture -d 'A drive file for reports'
complete -c nvmepolicyctl -n __nvmepolicyctl_nothing_yet -a config -d 'Check or show the configuration'
complete -c nvmepolicyctl -n '__nvmepolicyctl_second_of profile' -a 'list get set'
complete -c nvmepolicyctl -n '__nvmepolicyctl_second_of breaker' -a clear
complete -c nvmepolicyctl -n '__nvmepolicyctl_second_of config' -a 'check show'
complete -c nvmepolicyctl -n '__nvmepolicyctl_after "profile set"' -a '(__nvmepolicyctl_profiles)'
complete -c nvmepolicyctl -n '__nvmepolicyctl_after "breaker clear"' -a '(__nvmepolicyctl_controllers)'
complete -c nvmepolicyctl -n '__nvmepolicyctl_after "config check"' -F
complete -c nvmepolicyctl -n '__nvmepolicyctl_is show explain capture' -a '(__nvmepolicyctl_controllers)'
complete -c nvmepolicyctl -n '__nvmepolicyctl_is status show explain plan capture config' -l config -r -F -d 'Read this configuration'
complete -c nvmepolicyctl -n '__nvmepolicyctl_is status show explain plan capture' -l simulate -r -F -d 'Look at simulated controllers'
complete -c nvmepolicyctl -n '__nvmepolicyctl_is status show plan holds monitor predict' -l json -d 'Print JSON'
complete -c nvmepolicyctl -n '__nvmepolicyctl_is status show explain plan profile hold run holds reconcile reload breaker monitor' -l bus -x -a 'system session' -d 'Where the service is'
complete -c nvmepolicyctl -n '__nvmepolicyctl_is hold run' -l profile -x -a '(__nvmepolicyctl_profiles)' -d 'Hold this profile'
complete -c nvmepolicyctl -n '__nvmepolicyctl_is hold run' -l max-latency -x -a '0 1ms 5ms 25ms' -d 'Hold a wake latency of at most this'
complete -c nvmepolicyctl -n '__nvmepolicyctl_is hold run' -l for -r -F -d 'Only on the drives behind this path'
complete -c nvmepolicyctl -n '__nvmepolicyctl_is hold run' -l reason -x -d Why
complete -c nvmepolicyctl -n '__nvmepolicyctl_is predict' -l drive -r -F -d 'Drive file'
complete -c nvmepolicyctl -n '__nvmepolicyctl_is predict' -l tolerance -x -a 'any auto 25ms 100ms' -d 'Latency tolerance'
# After "run … --" comes another program's command line.
complete -c nvmepolicyctl -n 'contains -- -- (commandline -opc)' -a '(__fish_complete_subcommand --fcs-skip=(math (contains -i -- -- (commandline -opc)) ))'
