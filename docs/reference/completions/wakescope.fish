# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_wakescope_global_optspecs
    string join \n h/help V/version
end

function __fish_wakescope_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_wakescope_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_wakescope_using_subcommand
    set -l cmd (__fish_wakescope_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c wakescope -n "__fish_wakescope_needs_command" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_needs_command" -s V -l version -d 'Print version'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "check" -d 'What kernel and machine is this: preemption model with evidence, and what can be measured here'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "measure" -d 'How late are wakeups here, and can the number be trusted'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "load" -d 'Run loads by themselves, until Ctrl-C or for a while, and tell how much work they did'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "report" -d 'Show a run: as text, JSON, or the statistics block of realfeel'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "lab" -d 'Boot kernels in virtual time, where the same kernel gives the same figures on any machine'
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -l cpu -d 'The CPU to probe [default: the last that this process may use]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -l json -d 'Print JSON: the `host` of a run, with `suffers` and `instruments`'
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -l probe -d 'Also tell the preemption model from behaviour: time wakeups inside long system calls, for some seconds, on one CPU'
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l stimulus -d 'What causes the wakeups' -r -f -a "timer\t'A timer on an absolute grid of CLOCK_MONOTONIC'"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l interval -d 'Period of the grid of wakeups' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l duration -d 'How long to measure' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l samples -d 'Measure this many wakeups on each CPU, instead of for a time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l cpus -d 'CPUs to measure, as in 0,2-3 [default: all that this process may use]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l policy -d 'Scheduling policy of the probe [default: fifo, or other where that is not allowed]' -r -f -a "other\t''
fifo\t''
rr\t''
deadline\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l priority -d 'Real-time priority, 1 to 99 [default: 90]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l load -d 'Loads to measure under; `wakescope load --list` names them' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l load-dir -d 'Where loads keep their files [default: $TMPDIR or /tmp]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l warmup -d 'How long the load runs alone, and then the probe unrecorded, before measuring' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l idle-states -d 'Leave idle states as they are, or keep CPUs in the shallowest while measuring' -r -f -a "as-is\t''
shallow\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l worst -d 'How many of the most delayed wakeups to list in the record' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l fail-above -d 'Exit with 1 if the maximum, or a percentile, is above a time: 100us, p99.9=50us' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l out -d 'Folder to write the run to [default: a new one below runs/]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l seed -d 'Seed of the phase of the grid and of the contents of the loads\' files' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l json -d 'Print the run record to standard output instead of the report'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l save-samples -d 'Write every sample to samples.csv in the run\'s folder'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l duration -d 'How long, as in 10s or 5min (default: until Ctrl-C)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l dir -d 'Where loads make their files, which are removed at the end (default: $TMPDIR, or /tmp)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l seed -d 'Of the names and the content of files' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l json -d 'Print the result as JSON'
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l list -d 'List the loads'
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l format -d 'What to show it as' -r -f -a "text\t'For people: verdict, table, findings, histogram'
json\t'The run record'
realfeel\t'The block of Clark Williams\' paper of 2002: statistics, shares below thresholds, five nines'"
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l thresholds -d 'Thresholds for --format realfeel [default: those of 2002, 0.1 ms to 100 ms]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -s o -l output -d 'Write to a file instead of standard output' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch" -f -a "kernels" -d 'List the kernels that can be fetched, and those that have been'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch" -f -a "fetch" -d 'Fetch kernels from Debian\'s archive, and the emulator that boots them, for the lab alone'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l arch -d 'What the kernels run on: amd64 or arm64 (default: as this machine)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l all -d 'List every version, not just the newest of each series and flavour'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l refresh -d 'Look for newer ones, also if that was done today'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l json -d 'Print the list as JSON'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from fetch" -l arch -d 'What the kernels run on: amd64 or arm64 (default: as this machine)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from fetch" -l refresh -d 'Look for newer ones, also if that was done today'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from fetch" -s h -l help -d 'Print help (see more with \'--help\')'
